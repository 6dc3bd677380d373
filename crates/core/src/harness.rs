use crate::cache::{Cache, Encoder};
use crate::pipeline::BATCH;
use crate::split::Pattern;
use std::time::Instant;
struct E;
impl Encoder for E {
    fn prepare(&self, _: &[u8]) {}
    fn encode(&self, piece: &[u8], out: &mut Vec<u32>) {
        out.push(piece.len() as u32);
        if piece.len() > 12 {
            out.push(1)
        }
    }
    fn encode_all(&self, pieces: &[&[u8]], out: &mut Vec<u32>, places: &mut [(usize, usize)]) {
        for (piece, place) in pieces.iter().zip(places) {
            let f = out.len();
            self.encode(piece, out);
            *place = (f, out.len());
        }
    }
}
fn best(name: &str, n: usize, mut f: impl FnMut() -> usize) {
    let mut b = f64::MAX;
    let mut r = 0;
    if std::env::var("ONLY").is_ok_and(|o| o != name) {
        return;
    }
    let reps = std::env::var("REPS").map_or(7, |r| r.parse().unwrap());
    for _ in 0..reps {
        let t = Instant::now();
        r = f();
        b = b.min(t.elapsed().as_secs_f64());
    }
    println!("{name}: {:.1} ms  {:.2} ns/piece  ({r})", b * 1e3, b * 1e9 / n as f64);
}
#[test]
#[ignore]
fn harness() {
    let kind = std::env::var("KIND").unwrap_or("english".into());
    let text = std::fs::read(format!("/tmp/h-{kind}.txt")).unwrap();
    let pattern = Pattern::scanner("o200k").unwrap();
    let mut bounds: Vec<(usize, usize)> = Vec::new();
    pattern
        .split(&text, &mut |s, e| {
            bounds.push((s, e));
            Ok(())
        })
        .unwrap();
    let n = bounds.len();
    println!("{} bytes {} pieces", text.len(), n);
    let k = crate::split::bench_fill(&text, 3);
    println!("odd words {} odd bits {}", k & 0xffffffff, k >> 32);
    for l in 0..3 {
        best(&format!("fill {l}"), n, || crate::split::bench_fill(&text, l));
    }
    best("split, count", n, || {
        let mut k = 0;
        pattern
            .split(&text, &mut |s, e| {
                k += e ^ s;
                Ok(())
            })
            .unwrap();
        k
    });
    best("split, batches", n, || {
        let (mut b, mut len, mut k) = ([(0, 0); BATCH], 0, 0usize);
        pattern
            .split(&text, &mut |s, e| {
                b[len] = (s, e);
                len += 1;
                if len == BATCH {
                    len = 0;
                    k += std::hint::black_box(&b)[5].0;
                }
                Ok(())
            })
            .unwrap();
        k
    });
    let mut cache = Cache::default();
    let mut out: Vec<u32> = Vec::with_capacity(30_000_000);
    best("cache", n, || {
        out.clear();
        for b in bounds.chunks(BATCH) {
            cache.encode(&text, b, &mut out, &E);
        }
        out.len()
    });
    struct B<F>([(usize, usize); 80], usize, F);
    impl<F: FnMut(&[(usize, usize)])> crate::split::ends::Visit for B<F> {
        fn piece(&mut self, s: usize, e: usize) -> crate::error::Result<()> {
            if self.1 == 64 {
                (self.2)(&self.0[..64]);
                self.1 = 0;
            }
            self.0[self.1] = (s, e);
            self.1 += 1;
            Ok(())
        }
        fn pieces(&mut self, base: usize, bits: u64, start: usize) -> crate::error::Result<usize> {
            let count = bits.count_ones() as usize;
            if self.1 + count > 64 {
                (self.2)(&self.0[..self.1]);
                self.1 = 0;
            }
            crate::split::ends::put(base, bits, start, &mut self.0[self.1..]);
            self.1 += count;
            Ok(if count == 0 { start } else { base + 63 - bits.leading_zeros() as usize })
        }
    }
    best("split, vector", n, || {
        let mut k = 0;
        pattern
            .split(
                &text,
                &mut B([(0, 0); 80], 0, |b: &[(usize, usize)]| {
                    k += b.len() + std::hint::black_box(b)[0].0;
                }),
            )
            .unwrap();
        k
    });
    best("all vector", n, || {
        out.clear();
        pattern
            .split(
                &text,
                &mut B([(0, 0); 80], 0, |b: &[(usize, usize)]| {
                    cache.encode(&text, b, &mut out, &E);
                }),
            )
            .unwrap();
        out.len()
    });
    best("all", n, || {
        out.clear();
        let (mut b, mut len) = ([(0, 0); BATCH], 0);
        pattern
            .split(&text, &mut |s, e| {
                b[len] = (s, e);
                len += 1;
                if len == BATCH {
                    len = 0;
                    cache.encode(&text, &b, &mut out, &E);
                }
                Ok(())
            })
            .unwrap();
        out.len()
    });
}
