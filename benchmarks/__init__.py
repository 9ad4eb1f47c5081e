"""Speed, measured: `make bench`. No test asserts a time; the numbers live here and in docs/performance.md."""
