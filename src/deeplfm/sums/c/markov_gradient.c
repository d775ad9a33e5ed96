/* Gradients of the evidence, by the adjoint of the filter; see markov.h.

   The sums are a log det + sum_cd A_cd gram_cd, for what is given of a and A. With G = a R + 1/2
   sum_c r_c t_c', t_c = -2 sum_d A_cd r_d, and the smoothed state x_c = m_c + P r_c:

       by the noise of an entry     1/2 sum_c u_c t(u)_c + a w
       by its target                -t(u)_c
       by its loadings              sum_c t(u)_c x_c + 2 a (P of that entry) q,   q = w h - R g/v
       by Q                         G
       by log Phi of an oscillator  sum_c t_c x_c' + 2 a R P - 2 G Q, of its tile
       by Phi of the dense block    sum_c t_c (m before + ...)' + 2 G Phi P */
#include <stdlib.h>
#include <string.h>

#include "markov.h"

typedef struct {
    double *decay, *turn, *transition, *diffusion, *start, *loadings;
} Sums;

/* t_c for vectors that are `size` long; A is symmetric. */
static void toward(const double *A, int C, const double *from, int size, double *to) {
    memset(to, 0, (long)C * size * sizeof(double));
    for (int c = 0; c < C; c++)
        for (int d = 0; d < C; d++) {
            double factor = -(A[c * C + d] + A[d * C + c]);
            if (factor != 0)
                for (int i = 0; i < size; i++) to[c * size + i] += factor * from[d * size + i];
        }
}

static void by_entries(const Shared *of, int b, int t, const Row *row, const Later *later,
                       const double *x, const double *Pq, Sums *sums) {
    const Markov *job = of->job;
    int C = of->C, D = of->D;
    long ld = of->ld, at = ((long)b * job->rows + t) * D;
    double a = job->by_log_det[b], turned[C];
    for (int j = 0; j < row->count; j++) {
        int d = row->entry[j];
        const double *u = later->u + j * C, *q = later->q + j * ld;
        double *by = sums->loadings + d * ld, noise = a * later->w[j];
        toward(job->by_gram + (long)b * C * C, C, u, 1, turned);
        for (int c = 0; c < C; c++) {
            noise += u[c] * turned[c] / 2;
            if (turned[c] != 0) add(by, turned[c], x + c * ld, ld);
            if (job->by_targets != NULL) job->by_targets[(at + d) * C + c] = -turned[c];
        }
        job->by_noise[at + d] = noise;
        add(by, 2 * a, Pq + j * ld, ld);
        for (int i = 0; i < j; i++) {
            const double *g = row->gain + i * ld;
            add(by, -2 * a * dot(g, q, ld) / row->v[i], g, ld);
        }
    }
}

/* By the step that led to a row; `t` are the t_c, `x` the smoothed states. */
static void by_step(const Shared *of, int b, int step, const Row *row, const Later *later,
                    const double *turned, const double *x, Sums *sums) {
    int C = of->C, K = of->K, M = of->M, Kp = of->Kp, w = 2 * Kp;
    long ld = of->ld;
    double a = of->job->by_log_det[b];
    const double *c = of->cosine + (long)step * Kp, *s = of->sine + (long)step * Kp;
    for (int k = 0; k < K; k++) {
        double same = 2 * a * later->same[k], other = 2 * a * later->other[k];
        double trace = a * later->trace[k];
        for (int column = 0; column < C; column++) {
            const double *tc = turned + column * ld, *xc = x + column * ld;
            const double *rc = later->r + column * ld;
            same += tc[k] * xc[k] + tc[Kp + k] * xc[Kp + k];
            other += tc[Kp + k] * xc[k] - tc[k] * xc[Kp + k];
            trace += (tc[k] * rc[k] + tc[Kp + k] * rc[Kp + k]) / 2;
        }
        double fade = c[k] * c[k] + s[k] * s[k], q = of->spread[(long)step * Kp + k];
        sums->decay[(long)step * K + k] += -(same - 2 * q * trace) + 2 * fade * trace;
        sums->turn[(long)step * K + k] += other;
    }
    double *by_phi = sums->transition + (long)step * M * M;
    double *by_q = sums->diffusion + (long)step * M * M, line[ld];
    for (int i = 0; i < M; i++) { /* line: a row of G */
        memset(line, 0, sizeof line);
        add(line, a, later->R + (w + i) * ld, ld);
        for (int column = 0; column < C; column++)
            add(line, later->r[column * ld + w + i] / 2, turned + column * ld, ld);
        for (int j = 0; j < M; j++) {
            by_q[i * M + j] += line[w + j];
            double sum = 2 * dot(line, row->moved + j * ld, ld);
            for (int column = 0; column < C; column++)
                sum += turned[column * ld + w + i] * row->filtered[column * M + j];
            by_phi[i * M + j] += sum;
        }
    }
}

static void by_first(const Shared *of, int b, const Later *later, const double *turned,
                     Sums *sums) {
    int M = of->M, w = 2 * of->Kp;
    long ld = of->ld;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            double sum = of->job->by_log_det[b] * later->R[(w + i) * ld + w + j];
            for (int c = 0; c < of->C; c++)
                sum += later->r[c * ld + w + i] * turned[c * ld + w + j] / 2;
            sums->start[i * M + j] += sum;
        }
}

static void gradient_of_series(const Shared *of, int b, Row *rows, Later *later, double *memory,
                               Sums *sums) {
    const Markov *job = of->job;
    int N = job->rows, C = of->C, segments = (N + job->segment - 1) / job->segment;
    long ld = of->ld;
    double *turned = memory, *x = turned + C * ld, *mean = x + (C + of->D) * ld;
    double *both = mean + C * ld; /* r and q side by side, for one pass over P */
    memset(later->r, 0, ld * C * sizeof(double));
    memset(later->R, 0, ld * ld * sizeof(double));
    for (int segment = segments - 1; segment >= 0; segment--) {
        int from = segment * job->segment, to = from + job->segment < N ? from + job->segment : N;
        keep(of, rows, job->kept + ((long)b * segments + segment) * checkpoint_size(of), true);
        for (int t = from; t < to; t++)
            filter_row(of, b, t, rows + t - from, t + 1 < to ? rows + t + 1 - from : NULL, mean);
        for (int t = to - 1; t >= from; t--) {
            Row *row = rows + t - from;
            int step = t > 0 ? job->step[(long)b * N + t] : -1;
            use_entries(of, row, later);
            finish_row(of, step, row, later);
            memcpy(both, later->r, C * ld * sizeof(double));
            memcpy(both + C * ld, later->q, row->count * ld * sizeof(double));
            products(of, row->P, both, C + row->count, x);
            for (int i = 0; i < C * ld; i += WIDE) store(x + i, load(x + i) + load(row->m + i));
            toward(job->by_gram + (long)b * C * C, C, later->r, ld, turned);
            by_entries(of, b, t, row, later, x, x + C * ld, sums);
            if (t == 0) {
                by_first(of, b, later, turned, sums);
                break;
            }
            by_step(of, b, step, row, later, turned, x, sums);
            step_back(of, step, later);
            if (t % 16 == 0) mirror(of, later->R);
        }
    }
}

/* Series of a group, one after the other, into sums of the group. */
static bool gradient_of_group(const void *argument, int group) {
    const Shared *of = argument;
    const Markov *job = of->job;
    int K = of->K, M = of->M, D = of->D, states = 2 * K + M;
    long ld = of->ld, extra = (2 * D + 4 * of->C) * ld + D * ld, steps = job->steps;
    int rows_at_once = job->segment < job->rows ? job->segment : job->rows;
    double *memory = scratch_of_doubles(rows_at_once * row_size(of) + later_size(of) + extra);
    Row *rows = calloc(rows_at_once, sizeof *rows);
    if (memory == NULL || rows == NULL) {
        free(rows);
        return false;
    }
    for (int t = 0; t < rows_at_once; t++) memory = lay_out(of, rows + t, memory);
    Later later;
    lay_out_later(of, &later, memory);
    memory += later_size(of);
    Sums sums = {job->by_decay + group * steps * K,          job->by_turn + group * steps * K,
                 job->by_transition + group * steps * M * M, job->by_diffusion + group * steps * M * M,
                 job->by_start + (long)group * M * M,        memory};
    memory += D * ld;
    memset(sums.loadings, 0, D * ld * sizeof(double));
    int from = (long)job->series * group / job->groups;
    int to = (long)job->series * (group + 1) / job->groups;
    for (int b = from; b < to; b++) gradient_of_series(of, b, rows, &later, memory, &sums);
    for (int d = 0; d < D; d++)
        for (int i = 0; i < states; i++)
            job->by_loadings[((long)group * D + d) * states + i] = sums.loadings[d * ld + place(of, i)];
    free(rows);
    return true;
}

bool markov_gradient(const Markov *job, int threads) {
    Shared of;
    if (!share(&of, job)) return false;
    bool done = each_task(gradient_of_group, &of, job->groups, threads);
    give_up(&of);
    return done;
}
