/* A loop over rows, and how it calls each library: see cpu.py. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
typedef struct { void *f, *h; int64_t columns, narrow; void *out; } peer;
typedef void *P;
typedef int64_t I;
#define F(...) ((int (*)(__VA_ARGS__))p->f)
void ours(peer *p, const char *x, I n)
{
    if (p->narrow) F(const P, I, I, P, P, P)((P)x, n, p->columns, 0, p->out, 0);
    else F(const P, I, I, P, P)((P)x, n, p->columns, p->out, 0);
}
void lleaves(peer *p, const char *x, I n) { F(const P, P, int, int)((P)x, p->out, 0, (int)n); }
void tl2cgen(peer *p, const char *x, I n)
{
    for (I row = 0; row < n; row++) F(const P, int, P)((P)(x + row * p->columns * (p->narrow ? 4 : 8)), 1, p->out);
}
void lightgbm_one(peer *p, const char *x, I n) { F(P, const P, I *, P)(p->h, (P)x, &n, p->out); }
void lightgbm(peer *p, const char *x, I n)
{
    F(P, const P, int, int, int, int, int, int, int, const P, I *, P)(
        p->h, (P)x, 1, (int)n, (int)p->columns, 1, 1, 0, -1, "num_threads=1", &n, p->out);
}
void xgboost(peer *p, const char *x, I n)
{
    char rows[200], *how = "{\"type\":1,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false,"
                           "\"missing\":NaN,\"cache_id\":0}";
    P shape, size, out;
    snprintf(rows, sizeof rows, "{\"data\":[%lu,true],\"shape\":[%ld,%ld],\"typestr\":\"<f4\",\"version\":3}",
             (unsigned long)x, (long)n, (long)p->columns);
    F(P, P, P, P, P, P, P)(p->h, rows, how, 0, &shape, &size, &out);
}
double loop(void (*call)(peer *, const char *, I), peer *p, const char *x, I rows, I at_once, I bytes)
{
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (I row = 0; row < rows; row += at_once) call(p, x + row * bytes, at_once);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / rows;
}
