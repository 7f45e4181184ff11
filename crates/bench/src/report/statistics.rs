//! Mean, standard deviation and median of repeated measurements.

/// Of at least one value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// How many values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1 below); 0 of a single value.
    pub deviation: f64,
    /// The middle value; of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Statistics {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Statistics> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        let middle = |number: usize| sorted.get(number).copied().unwrap_or(mean);
        let median = (middle((count - 1) / 2) + middle(count / 2)) / 2.0;
        Some(Statistics { count, mean, deviation, median, min, max })
    }
}

/// The geometric mean; `None` without values.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::{Statistics, geometric_mean};

    #[test]
    fn known_answers() {
        let found = Statistics::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("values");
        assert_eq!((found.mean, found.median, found.min, found.max, found.count), (5.0, 4.5, 2.0, 9.0, 8));
        assert!((found.deviation - 2.138).abs() < 0.001);
        assert_eq!(Statistics::of(&[3.0]).map(|one| (one.mean, one.deviation, one.median)), Some((3.0, 0.0, 3.0)));
        assert_eq!(Statistics::of(&[]), None);
        assert!((geometric_mean(&[1.0, 4.0]).expect("values") - 2.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
    }
}
