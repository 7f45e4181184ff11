//! Many measured times as a few figures.

use std::time::Duration;

/// In milliseconds, as results have it.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value below which that share of the sorted times lies (nearest rank); zero when there are none.
pub fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::quantile;
    use std::time::Duration;

    #[test]
    fn quantiles() {
        let times: Vec<Duration> = (0..=100).map(Duration::from_millis).collect();
        assert_eq!(quantile(&times, 0.5), Duration::from_millis(50));
        assert_eq!(quantile(&times, 0.99), Duration::from_millis(99));
        assert_eq!(quantile(&times, 1.0), Duration::from_millis(100));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
