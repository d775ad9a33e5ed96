/* What later rows say about a state (Bryson and Frazier); see markov.h.

       u = (e - g'r)/v,  r += h u;   R -> (I - h g'/v) R (I - g h'/v) + h h'/v
       r -> Phi' r,  R -> Phi' R Phi

   With k = R g/v and w = 1/v + g'R g/v^2 the entries of a row add h p' + p h', p = w h/2 - k. */
#include <string.h>

#include "markov.h"

long later_size(const Shared *of) {
    long ld = of->ld;
    return ld * (of->C + ld + 3 * of->D) + padded(of->D * of->C) + (3 + 2 * WIDE) * of->Kp;
}

void lay_out_later(const Shared *of, Later *later, double *memory) {
    long ld = of->ld;
    memset(memory, 0, later_size(of) * sizeof(double));
    later->r = memory;
    later->R = later->r + ld * of->C;
    later->Rg = later->R + ld * ld;
    later->half = later->Rg + ld * of->D;
    later->q = later->half + ld * of->D;
    later->u = later->q + ld * of->D;
    later->same = later->u + padded(of->D * of->C);
    later->other = later->same + of->Kp;
    later->trace = later->other + of->Kp;
    later->inner = later->trace + of->Kp;
}

void use_entries(const Shared *of, Row *row, Later *later) {
    int C = of->C, n = row->count;
    long ld = of->ld;
    products(of, later->R, row->gain, n, later->Rg);
    for (int j = n - 1; j >= 0; j--) {
        const double *h = of->loadings + row->entry[j] * ld, *g = row->gain + j * ld;
        double *k = later->Rg + j * ld, *half = later->half + j * ld, *q = later->q + j * ld;
        for (int i = j + 1; i < n; i++) { /* R has taken in entry i already */
            const double *hi = of->loadings + row->entry[i] * ld, *p = later->half + i * ld;
            double on_h = dot(p, g, ld), on_p = dot(hi, g, ld);
            add(k, on_h, hi, ld);
            add(k, on_p, p, ld);
        }
        double v = row->v[j], w = 1 / v + dot(g, k, ld) / (v * v);
        later->w[j] = w;
        for (int i = 0; i < ld; i += WIDE) {
            vec scaled = load(k + i) / v, toward = w * load(h + i);
            store(half + i, 0.5 * toward - scaled);
            store(q + i, toward - scaled);
        }
        for (int c = 0; c < C; c++) {
            double *r = later->r + c * ld;
            double u = (row->error[j * C + c] - dot(g, r, ld)) / v;
            later->u[j * C + c] = u;
            if (u != 0) add(r, u, h, ld);
        }
    }
}

/* Tiles of two oscillators: what n entries add, sums of R P, then both sides are turned back. With
   an n that the compiler knows, the vectors of all entries stay in registers. */
INLINE void back_tiles(const Shared *of, int step, const Row *row, Later *later, int n) {
    long ld = of->ld;
    int K = of->K, Kp = of->Kp;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    for (int b = 0; b < K; b += WIDE) {
        vec cb = load(c + b), sb = load(s + b);
        for (int a = 0; a < K; a++) {
            double *x = later->R + a * ld + b, *y = x + Kp * ld;
            vec xx = load(x), xy = load(x + Kp), yx = load(y), yy = load(y + Kp);
            for (int j = 0; j < n; j++) {
                const double *h = of->loadings + row->entry[j] * ld, *p = later->half + j * ld;
                vec hx = load(h + b), hy = load(h + Kp + b), px = load(p + b), py = load(p + Kp + b);
                xx += h[a] * px + p[a] * hx;
                xy += h[a] * py + p[a] * hy;
                yx += h[Kp + a] * px + p[Kp + a] * hx;
                yy += h[Kp + a] * py + p[Kp + a] * hy;
            }
            if (a / WIDE * WIDE == b) later->trace[a] = xx[a - b] + yy[a - b];
            const double *Px = row->P + a * ld + b, *Py = Px + Kp * ld;
            vec Pxx = load(Px), Pxy = load(Px + Kp), Pyx = load(Py), Pyy = load(Py + Kp);
            double *inner = later->inner + 2L * WIDE * a;
            store(inner, load(inner) + xx * Pxx + xy * Pxy + yx * Pyx + yy * Pyy);
            inner += WIDE;
            store(inner, load(inner) + yx * Pxx + yy * Pxy - xx * Pyx - xy * Pyy);
            double ca = c[a], sa = s[a];
            vec left = ca * xx + sa * yx, right = ca * xy + sa * yy;
            vec low = ca * yx - sa * xx, high = ca * yy - sa * xy;
            store(x, left * cb + right * sb);
            store(x + Kp, right * cb - left * sb);
            store(y, low * cb + high * sb);
            store(y + Kp, high * cb - low * sb);
        }
    }
}

void finish_row(const Shared *of, int step, const Row *row, Later *later) {
    long ld = of->ld;
    int K = of->K, Kp = of->Kp, w = 2 * Kp, n = row->count;
    for (int i = w; i < w + of->M; i++)
        for (int j = 0; j < n; j++) {
            const double *h = of->loadings + row->entry[j] * ld, *p = later->half + j * ld;
            add(later->R + i * ld, h[i], p, ld);
            add(later->R + i * ld, p[i], h, ld);
        }
    if (step < 0) return;
    memset(later->inner, 0, 2L * WIDE * Kp * sizeof(double));
    if (n == 1) back_tiles(of, step, row, later, 1);
    else if (n == 2) back_tiles(of, step, row, later, 2);
    else if (n == 3) back_tiles(of, step, row, later, 3);
    else back_tiles(of, step, row, later, n);
    for (int a = 0; a < K; a++) {
        later->same[a] = total(load(later->inner + 2L * WIDE * a));
        later->other[a] = total(load(later->inner + 2L * WIDE * a + WIDE));
    }
    for (int i = w; i < w + of->M; i++) { /* what the dense block has with each oscillator */
        const double *R = later->R + i * ld, *P = row->P + i * ld;
        for (int a = 0; a < K; a += WIDE) {
            vec Rx = load(R + a), Ry = load(R + Kp + a), Px = load(P + a), Py = load(P + Kp + a);
            store(later->same + a, load(later->same + a) + Rx * Px + Ry * Py);
            store(later->other + a, load(later->other + a) + Ry * Px - Rx * Py);
        }
    }
}

/* Rows of the dense block: the other side is turned first, then Phi' from the left. */
static void back_dense(const Shared *of, int step, double *R) {
    long ld = of->ld;
    int M = of->M, Kp = of->Kp, w = 2 * Kp;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    const double *phi = of->job->transition + (long)step * M * M;
    double rows[M * ld];
    memset(rows, 0, sizeof rows);
    for (int i = 0; i < M; i++) {
        const double *from = R + (w + i) * ld;
        double *to = rows + i * ld;
        for (int k = 0; k < Kp; k += WIDE) {
            vec x = load(from + k), y = load(from + Kp + k);
            store(to + k, x * load(c + k) + y * load(s + k));
            store(to + Kp + k, y * load(c + k) - x * load(s + k));
        }
        for (int j = 0; j < M; j++)
            for (int k = 0; k < M; k++) to[w + j] += from[w + k] * phi[k * M + j];
    }
    for (int i = 0; i < M; i++) {
        double *to = R + (w + i) * ld;
        memset(to, 0, ld * sizeof(double));
        for (int j = 0; j < M; j++) add(to, phi[j * M + i], rows + j * ld, ld);
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < w; j++) R[j * ld + w + i] = R[(w + i) * ld + j];
}

void step_back(const Shared *of, int step, Later *later) {
    int M = of->M, Kp = of->Kp, w = 2 * Kp;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    const double *phi = of->job->transition + (long)step * M * M;
    for (int column = 0; column < of->C; column++) {
        double *r = later->r + (long)column * of->ld, before[M + 1];
        for (int k = 0; k < Kp; k += WIDE) {
            vec x = load(r + k), y = load(r + Kp + k);
            store(r + k, x * load(c + k) + y * load(s + k));
            store(r + Kp + k, y * load(c + k) - x * load(s + k));
        }
        memcpy(before, r + w, M * sizeof(double));
        for (int i = 0; i < M; i++) {
            r[w + i] = 0;
            for (int j = 0; j < M; j++) r[w + i] += phi[j * M + i] * before[j];
        }
    }
    if (M > 0) back_dense(of, step, later->R);
}
