//! Prints the time of each case: `cargo bench -p advisor-benches --bench time`. Time depends on the machine, so
//! CI checks the counts instead.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn time(criterion: &mut Criterion) {
    for case in advisor_benches::all() {
        let size = case.sizes.0;
        let mut group = criterion.benchmark_group(case.unit);
        group.sample_size(20).throughput(Throughput::Elements(size as u64));
        group.bench_function(&case.name, |bencher| {
            bencher.iter_batched(|| case.work(size), |work| black_box(work)(), BatchSize::PerIteration);
        });
        group.finish();
    }
}

criterion_group!(benches, time);
criterion_main!(benches);
