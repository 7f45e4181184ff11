//! A logarithmic axis.

/// From values to positions.
pub struct Scale {
    low: f64,
    high: f64,
    /// Where the lowest value stands.
    from: f64,
    /// Where the highest value stands.
    to: f64,
}

impl Scale {
    /// An axis over all these values, which runs over whole powers of ten, or over less when all lie within one; `None` without a value
    /// above 0.
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Scale> {
        let (mut low, mut high) = (f64::INFINITY, 0.0f64);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if high == 0.0 {
            return None;
        }
        // Half a power at each end is enough room when the values span several.
        let step = |value: f64, up: bool| {
            let power = 10f64.powf(value.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
            let slack = 1.0 + 1e-9;
            let fits = |candidate: &&f64| if up { **candidate * slack >= value } else { **candidate <= value * slack };
            if up { steps.iter().find(fits) } else { steps.iter().rev().find(fits) }.copied().unwrap_or(value)
        };
        let (mut low, mut high) = (step(low, false), step(high, true));
        if low >= high {
            (low, high) = (low / 2.0, high * 2.0);
        }
        Some(Scale { low, high, from, to })
    }

    /// The position of a value; values that are off the axis stand at its ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln());
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Values to mark: the powers of ten, and 2 and 5 times those when there are few.
    pub fn ticks(&self) -> Vec<f64> {
        let powers = self.steps(&[1.0]);
        match powers.len() {
            4.. => powers,
            2..=3 if self.high / self.low > 50.0 => powers,
            _ => self.steps(&[1.0, 2.0, 5.0]),
        }
    }

    fn steps(&self, times: &[f64]) -> Vec<f64> {
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|power| times.iter().map(move |times| times * 10f64.powi(power)));
        all.filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn a_decade_is_as_long_as_the_next() {
        let scale = Scale::over([1.0, 10.0, 100.0].into_iter(), 0.0, 200.0).expect("values");
        assert_eq!([1.0, 10.0, 100.0].map(|value| scale.at(value).round()), [0.0, 100.0, 200.0]);
        assert_eq!(scale.ticks(), [1.0, 10.0, 100.0]);
        assert_eq!((scale.at(0.0), scale.at(1e9)), (0.0, 200.0));
    }

    #[test]
    fn one_value_has_room_around_it() {
        let scale = Scale::over([5.0].into_iter(), 0.0, 100.0).expect("a value");
        let at = scale.at(5.0);
        assert!(at > 10.0 && at < 90.0, "{at}");
        assert!(scale.ticks().len() >= 2);
        assert!(Scale::over([0.0, f64::NAN].into_iter(), 0.0, 1.0).is_none());
    }
}
