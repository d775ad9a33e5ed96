/* The filter, row by row, and its evidence; see markov.h.

       P -> Phi P Phi' + Q,   g = P h,  v = h'g + noise,  e = y - h'm,  m += g e/v,  P -= g g'/v */
#include "markov.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOGETHER 4 /* vectors that a product takes at once: as many as registers hold */
#define UNEVEN 16  /* rows until rounding may have made a covariance uneven */

static void pad(const Shared *of, const double *from, int count, double *to) {
    int states = 2 * of->K + of->M;
    for (int j = 0; j < count; j++)
        for (int i = 0; i < states; i++) to[(long)j * of->ld + place(of, i)] = from[j * states + i];
}

bool share(Shared *of, const Markov *job) {
    int K = job->oscillators, M = job->dense, Kp = padded(K), ld = 2 * Kp + padded(M);
    *of = (Shared){job, K, M, job->outputs, job->columns, Kp, ld};
    long table = (long)job->steps * Kp;
    of->cosine = calloc(3 * table + (long)(job->outputs + job->readouts) * ld + 1, sizeof(double));
    if (of->cosine == NULL) return false;
    of->sine = of->cosine + table;
    of->spread = of->sine + table;
    of->loadings = of->spread + table;
    of->readout = of->loadings + (long)job->outputs * ld;
    for (long t = 0; t < job->steps; t++)
        for (int k = 0; k < K; k++) {
            double decay = job->decay[t * K + k], turn = job->turn[t * K + k];
            of->cosine[t * Kp + k] = exp(-decay) * cos(turn);
            of->sine[t * Kp + k] = exp(-decay) * sin(turn);
            of->spread[t * Kp + k] = -expm1(-2 * decay);
        }
    pad(of, job->loadings, job->outputs, of->loadings);
    pad(of, job->readout, job->readouts, of->readout);
    return true;
}

void give_up(Shared *of) { free(of->cosine); }

long row_size(const Shared *of) {
    long ld = of->ld;
    return ld * (ld + of->C + 2 * of->D + of->M) + padded(of->D * of->C) + padded(of->C * of->M);
}

double *lay_out(const Shared *of, Row *row, double *memory) {
    long ld = of->ld;
    /* What pads rows and columns is never written, and NaN of another call times 0 is NaN. */
    memset(memory, 0, row_size(of) * sizeof(double));
    row->P = memory;
    memset(row->P, 0, ld * ld * sizeof(double)); /* rows of padding are never written, but mirrored */
    row->m = row->P + ld * ld;
    row->gain = row->m + ld * of->C;
    row->scaled = row->gain + ld * of->D;
    row->moved = row->scaled + ld * of->D;
    row->error = row->moved + ld * of->M;
    row->filtered = row->error + padded(of->D * of->C);
    return row->filtered + padded(of->C * of->M);
}

/* `count` at once: two vectors of columns of A are read once, and sums stay in registers. */
INLINE void some_products(const Shared *of, const double *A, const double *v, int count,
                          double *out) {
    int ld = of->ld, K = of->K, Kp = of->Kp, M = of->M;
    const int from[3] = {0, Kp, 2 * Kp}, to[3] = {K, Kp + K, 2 * Kp + M};
    for (int c = 0; c < ld; c += 2 * WIDE) {
        bool two = c + WIDE < ld;
        vec sum[TOGETHER][2] = {{{0}}};
        for (int part = 0; part < 3; part++)
            for (int i = from[part]; i < to[part]; i++) {
                const double *row = A + (long)i * ld + c;
                vec left = load(row), right = two ? load(row + WIDE) : left;
                for (int j = 0; j < count; j++) {
                    double factor = v[(long)j * ld + i];
                    sum[j][0] += factor * left;
                    sum[j][1] += factor * right;
                }
            }
        for (int j = 0; j < count; j++) {
            store(out + (long)j * ld + c, sum[j][0]);
            if (two) store(out + (long)j * ld + c + WIDE, sum[j][1]);
        }
    }
}

void products(const Shared *of, const double *A, const double *v, int count, double *out) {
    long ld = of->ld;
    for (; count >= TOGETHER; count -= TOGETHER, v += TOGETHER * ld, out += TOGETHER * ld)
        some_products(of, A, v, TOGETHER, out);
    if (count == 3) some_products(of, A, v, 3, out);
    if (count == 2) some_products(of, A, v, 2, out);
    if (count == 1) some_products(of, A, v, 1, out);
}

void mirror(const Shared *of, double *A) {
    long ld = of->ld;
    for (long i = 0; i < ld; i++)
        for (long j = 0; j < i; j++) A[j * ld + i] = A[i * ld + j];
}

void begin(const Shared *of, Row *row) {
    long ld = of->ld;
    int M = of->M, w = 2 * of->Kp;
    memset(row->P, 0, ld * ld * sizeof(double));
    memset(row->m, 0, ld * of->C * sizeof(double));
    for (int i = 0; i < 2 * of->K; i++) row->P[place(of, i) * (ld + 1)] = 1;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) row->P[(w + i) * ld + w + j] = of->job->start[i * M + j];
}

static void predict_means(const Shared *of, int step, const double *mean, Row *next) {
    int M = of->M, Kp = of->Kp, w = 2 * Kp;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    const double *phi = of->job->transition + (long)step * M * M;
    for (int column = 0; column < of->C; column++) {
        const double *m = mean + (long)column * of->ld;
        double *to = next->m + (long)column * of->ld;
        for (int k = 0; k < Kp; k += WIDE) {
            vec x = load(m + k), y = load(m + Kp + k);
            store(to + k, load(c + k) * x - load(s + k) * y);
            store(to + Kp + k, load(s + k) * x + load(c + k) * y);
        }
        for (int i = 0; i < M; i++) {
            double sum = 0;
            for (int j = 0; j < M; j++) sum += phi[i * M + j] * m[w + j];
            to[w + i] = sum;
            next->filtered[column * M + i] = m[w + i];
        }
    }
}

/* Tiles of two oscillators: the entries' part is taken off, then both sides are turned. */
static void predict_tiles(const Shared *of, int step, const Row *row, double *to) {
    long ld = of->ld;
    int K = of->K, Kp = of->Kp, n = row->count;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    for (int b = 0; b < K; b += WIDE) {
        vec cb = load(c + b), sb = load(s + b);
        for (int a = 0; a < K; a++) {
            const double *x = row->P + a * ld + b, *y = x + Kp * ld;
            vec xx = load(x), xy = load(x + Kp), yx = load(y), yy = load(y + Kp);
            const double *w = row->scaled;
            for (int j = 0; j < n; j++, w += ld) {
                vec wx = load(w + b), wy = load(w + Kp + b);
                double ax = w[a], ay = w[Kp + a];
                xx -= ax * wx;
                xy -= ax * wy;
                yx -= ay * wx;
                yy -= ay * wy;
            }
            double ca = c[a], sa = s[a];
            vec left = ca * xx - sa * yx, right = ca * xy - sa * yy;
            vec low = sa * xx + ca * yx, high = sa * xy + ca * yy;
            double *out = to + a * ld + b;
            store(out, left * cb - right * sb);
            store(out + Kp, left * sb + right * cb);
            out += Kp * ld;
            store(out, low * cb - high * sb);
            store(out + Kp, low * sb + high * cb);
        }
    }
}

/* Rows of the dense block: `moved` = Phi P first, then the other side; and their mirror image. */
static void predict_dense(const Shared *of, int step, const Row *row, Row *next) {
    long ld = of->ld;
    int M = of->M, Kp = of->Kp, w = 2 * Kp;
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    const double *phi = of->job->transition + (long)step * M * M;
    const double *q = of->job->diffusion + (long)step * M * M;
    double rows[M * ld];
    for (int i = 0; i < M; i++) {
        double *own = rows + i * ld;
        memcpy(own, row->P + (w + i) * ld, ld * sizeof(double));
        for (int j = 0; j < row->count; j++)
            add(own, -row->scaled[j * ld + w + i], row->scaled + j * ld, ld);
    }
    /* Columns of Phi P, over all states: those of the gradient of Phi. */
    for (int j = 0; j < M; j++) {
        double *moved = next->moved + j * ld;
        const double *from = rows + j * ld; /* symmetric: a row of P is a column */
        memset(moved, 0, ld * sizeof(double));
        for (int k = 0; k < Kp; k += WIDE) {
            vec x = load(from + k), y = load(from + Kp + k);
            store(moved + k, load(c + k) * x - load(s + k) * y);
            store(moved + Kp + k, load(s + k) * x + load(c + k) * y);
        }
        for (int i = 0; i < M; i++)
            for (int k = 0; k < M; k++) moved[w + i] += phi[i * M + k] * from[w + k];
    }
    for (int i = 0; i < M; i++) {
        double *to = next->P + (w + i) * ld;
        memset(to, 0, ld * sizeof(double));
        for (int j = 0; j < M; j++) add(to, phi[i * M + j], next->moved + j * ld, ld);
        for (int j = 0; j < M; j++) to[w + j] += q[i * M + j];
    }
    for (int i = 0; i < M; i++)
        for (int j = 0; j < w; j++) next->P[j * ld + w + i] = next->P[(w + i) * ld + j];
}

void predict(const Shared *of, int step, const Row *row, const double *mean, Row *next) {
    const double *q = of->spread + (long)step * of->Kp;
    predict_means(of, step, mean, next);
    predict_tiles(of, step, row, next->P);
    for (int k = 0; k < of->K; k++) {
        next->P[k * (of->ld + 1L)] += q[k];
        next->P[(of->Kp + k) * (of->ld + 1L)] += q[k];
    }
    if (of->M > 0) predict_dense(of, step, row, next);
}

void observe(const Shared *of, int b, int t, Row *row, double *mean) {
    const Markov *job = of->job;
    int D = of->D, C = of->C, n = 0;
    long ld = of->ld, at = (long)b * job->rows + t;
    const double *noise = job->noise + (long)b * job->noise_series + (long)t * job->noise_rows;
    memcpy(mean, row->m, ld * C * sizeof(double));
    for (int d = 0; d < D; d++)
        if (job->observed[at * D + d]) row->entry[n++] = d;
    row->count = n;
    if (n == D) {
        products(of, row->P, of->loadings, D, row->gain);
    } else {
        for (int j = 0; j < n; j++)
            memcpy(row->scaled + j * ld, of->loadings + row->entry[j] * ld, ld * sizeof(double));
        products(of, row->P, row->scaled, n, row->gain);
    }
    for (int j = 0; j < n; j++) {
        int d = row->entry[j];
        const double *h = of->loadings + d * ld;
        double *g = row->gain + j * ld, *scaled = row->scaled + j * ld;
        for (int i = 0; i < j; i++) {
            const double *before = row->gain + i * ld;
            add(g, -dot(before, h, ld) / row->v[i], before, ld);
        }
        double v = dot(h, g, ld), root;
        row->v[j] = v = (v > 0 ? v : 0) + noise[d];
        root = 1 / sqrt(v);
        for (int i = 0; i < ld; i += WIDE) store(scaled + i, root * load(g + i));
        for (int column = 0; column < C; column++) {
            double *m = mean + column * ld;
            double e = job->targets[(at * D + d) * C + column] - dot(h, m, ld);
            row->error[j * C + column] = e;
            if (e != 0) add(m, e / v, g, ld);
        }
    }
}

void filter_row(const Shared *of, int b, int t, Row *row, Row *next, double *mean) {
    observe(of, b, t, row, mean);
    if (next == NULL) return;
    predict(of, of->job->step[(long)b * of->job->rows + t + 1], row, mean, next);
    if (t % UNEVEN == 0) mirror(of, next->P);
}

long checkpoint_size(const Shared *of) {
    return (long)of->ld * (of->ld + of->C + of->M) + padded(of->C * of->M);
}

/* To a checkpoint, or from it: the prediction of a row, and the step to it. */
void keep(const Shared *of, const Row *row, double *memory, bool back) {
    long ld = of->ld, sizes[4] = {ld * ld, ld * of->C, ld * of->M, of->C * of->M};
    double *parts[4] = {row->P, row->m, row->moved, row->filtered};
    for (int i = 0; i < 4; memory += sizes[i++])
        memcpy(back ? parts[i] : memory, back ? memory : parts[i], sizes[i] * sizeof(double));
}

static bool filter_series(const void *argument, int b) {
    const Shared *of = argument;
    const Markov *job = of->job;
    int C = of->C, N = job->rows, segments = (N + job->segment - 1) / job->segment;
    Row rows[2] = {0};
    double *memory = scratch_of_doubles(2 * row_size(of) + (long)C * of->ld);
    if (memory == NULL) return false;
    double *mean = lay_out(of, rows + 1, lay_out(of, rows, memory));
    double log_det = 0, *gram = job->gram + (long)b * C * C;
    memset(gram, 0, (long)C * C * sizeof *gram);
    begin(of, rows);
    for (int t = 0; t < N; t++) {
        Row *row = rows + t % 2;
        if (job->kept != NULL && t % job->segment == 0)
            keep(of, row, job->kept + ((long)b * segments + t / job->segment) * checkpoint_size(of),
                 false);
        filter_row(of, b, t, row, t + 1 < N ? rows + (t + 1) % 2 : NULL, mean);
        for (int j = 0; j < row->count; j++) {
            const double *e = row->error + j * C;
            log_det += log(row->v[j]);
            for (int i = 0; i < C; i++)
                for (int k = 0; k < C; k++) gram[i * C + k] += e[i] * e[k] / row->v[j];
        }
    }
    job->log_det[b] = log_det;
    return true;
}

long size_of_markov(void) { return sizeof(Markov); }

bool markov_evidence(const Markov *job, int threads) {
    Shared of;
    if (!share(&of, job)) return false;
    bool done = each_task(filter_series, &of, job->series, threads);
    give_up(&of);
    return done;
}

/* Doubles between two checkpoints of a series. */
long markov_checkpoint(const Markov *job) {
    Shared of = {job, job->oscillators, job->dense, job->outputs, job->columns};
    of.Kp = padded(of.K);
    of.ld = 2 * of.Kp + padded(of.M);
    return checkpoint_size(&of);
}
