//! Which seeds the random histories of a test are played with.

/// Plays a history for each of `count` seeds, or for those of `SEEDS=FROM..TO`, or for the one of `SEED`, on as many threads as there are
/// processors; says at the end which failed.
pub fn play(count: u64, history: impl Fn(u64) + Sync + std::panic::RefUnwindSafe) {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let of = |key: &str| std::env::var(key).ok();
    let range = of("SEEDS").and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(number(from)?..number(to)?)
    });
    let single = of("SEED").as_deref().and_then(number).map(|seed| seed..seed + 1);
    let seeds = range.or(single).unwrap_or(0..count);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let (seeds, history) = (&seeds, &history);
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let workers = (0..threads).map(|worker| {
            scope.spawn(move || {
                let own = seeds.clone().filter(move |seed| seed % threads == worker);
                own.filter(|seed| std::panic::catch_unwind(|| history(*seed)).is_err()).collect::<Vec<_>>()
            })
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "SEED={failed:?}");
}
