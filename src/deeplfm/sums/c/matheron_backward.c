/* The gradients of `matheron.c`: with g the one in b, that in K is

       sym(L^{-T} Phi(g v'^T) L^{-1} - (L^{-T} g) c'^T),   Phi: the lower triangle, half its diagonal */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "matheron.h"

/* Of what is learnt of q(v'), from the gradient in v'. */
static void gaussian_gradients(const Matheron *job, int q, const double *by_values, double *rest) {
    int M = job->points, S = job->samples;
    const float *noise = job->noise + (long)q * M * S;
    memset(rest, 0, sizeof(double) * M * S);
    for (int i = 0; i < M; i++) {
        const float *frame = job->frame + ((long)q * M + i) * M;
        for (int k = 0; k <= i; k++)
            SIMD for (int s = 0; s < S; s++) rest[k * S + s] += frame[k] * by_values[i * S + s];
    }
    for (int i = 0; i < M; i++) {
        double total = 0, *own = rest + (long)i * S;
        for (int s = 0; s < S; s++) total += own[s];
        job->by_shift[q * M + i] = (float)(job->unit * total);
        for (int k = 0; k <= i; k++) {
            double by = 0;
            for (int s = 0; s < S; s++) by += own[s] * noise[k * S + s];
            if (k < i)
                job->by_below[((long)q * M + i) * M + k] = (float)by;
            else
                job->by_log_diagonal[q * M + i] =
                    (float)(by * exp((double)job->log_diagonal[q * M + i]));
        }
    }
}

/* The gradient in s through the waves of one force, added; `less` is that in r, negative. */
static void wave_gradients(const Matheron *job, int q, const double *less, double *by_scaled,
                           float *wave) {
    int M = job->points, S = job->samples, B = job->basis, P = job->inputs;
    float size = (float)sqrt(2.0 / B);
    for (int m = 0; m < M; m++) {
        const float *turns = job->turns + ((long)q * M + m) * B;
        memset(wave, 0, sizeof(float) * B);
        for (int s = 0; s < S; s++) {
            const float *weights = job->weights + ((long)s * job->forces + q) * B;
            float along = size * (float)less[m * S + s];
            SIMD for (int b = 0; b < B; b++) wave[b] += along * weights[b];
        }
        SIMD for (int b = 0; b < B; b++)
            wave[b] *= 2 * sine_of_half_turns(turns[b]) * cosine_of_half_turns(turns[b]);
        for (int p = 0; p < P; p++) {
            double total = 0;
            for (int b = 0; b < B; b++) total += wave[b] * job->xi[((long)q * B + b) * P + p];
            by_scaled[m * P + p] += total;
        }
    }
}

/* What the parts of the backward pass share, per force [M, S] or set [M, P]. */
typedef struct {
    const Matheron *job;
    double *by_values, *less; /* gradients in v', and in r but for the sign */
    double *through_gram, *through_waves;
} Back;

/* Through the Gram matrix of one set: from sums of g v'^T and (L^{-T} g) c'^T. */
static bool gram_gradients(const Back *back, int set) {
    const Matheron *job = back->job;
    int M = job->points, P = job->inputs, S = job->samples, sets = sets_of(job);
    long square = (long)M * M, block = (long)M * S;
    const double *factor = job->factor + set * square, *gram = job->gram + set * square;
    const double *scaled = job->scaled + (long)set * M * P;
    double *outer = calloc(3 * square + 2 * M, sizeof(double)), *inner = outer + square;
    double *turned = inner + square, *columns = turned + square;
    double *by_scaled = back->through_gram + (long)set * M * P;
    if (outer == NULL) return false;
    for (int q = sets > 1 ? set : 0; q < (sets > 1 ? set + 1 : job->forces); q++)
        for (int s = 0; s < S; s++) {
            double *v = columns, *c = columns + M; /* in one piece: loops over them are long */
            for (int j = 0; j < M; j++) {
                v[j] = job->values[q * block + j * S + s];
                c[j] = job->unscaled[q * block + j * S + s];
            }
            for (int i = 0; i < M; i++) {
                double g = back->by_values[q * block + i * S + s];
                double u = back->less[q * block + i * S + s];
                double *one = outer + i * M, *other = inner + i * M;
                SIMD for (int j = 0; j <= i; j++) one[j] += g * v[j];
                SIMD for (int j = 0; j < M; j++) other[j] += u * c[j];
            }
        }
    for (int i = 0; i < M; i++) outer[i * M + i] /= 2;
    solve_transposed(factor, M, M, outer);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) turned[j * M + i] = outer[i * M + j];
    solve_transposed(factor, M, M, turned);
    memset(by_scaled, 0, sizeof(double) * M * P);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) {
            double by = turned[j * M + i] + turned[i * M + j] - inner[i * M + j] - inner[j * M + i];
            for (int p = 0; p < P; p++)
                by_scaled[i * P + p] +=
                    by * gram[i * M + j] * (scaled[j * P + p] - scaled[i * P + p]);
        }
    free(outer);
    return true;
}

static bool back_part(const void *argument, int task) {
    const Back *back = argument;
    const Matheron *job = back->job;
    int M = job->points, P = job->inputs, S = job->samples, sets = sets_of(job);
    if (task < sets) return gram_gradients(back, task);
    int q = task - sets;
    double *rest = malloc(sizeof(double) * M * S);
    float *wave = malloc(sizeof(float) * job->basis);
    bool enough = rest != NULL && wave != NULL;
    if (enough) {
        double *by_scaled = back->through_waves + (long)q * M * P;
        memset(by_scaled, 0, sizeof(double) * M * P);
        wave_gradients(job, q, back->less + (long)q * M * S, by_scaled, wave);
        gaussian_gradients(job, q, back->by_values + (long)q * M * S, rest);
    }
    free(rest);
    free(wave);
    return enough;
}

/* Gradients in b and r of all forces, and in the variances. */
static void residual_gradients(const Back *back) {
    const Matheron *job = back->job;
    int Q = job->forces, M = job->points, S = job->samples, sets = sets_of(job);
    for (int q = 0; q < Q; q++) {
        const double *factor = job->factor + (long)(sets > 1 ? q : 0) * M * M;
        const double *unscaled = job->unscaled + (long)q * M * S;
        double *by_values = back->by_values + (long)q * M * S, *less = back->less + (long)q * M * S;
        double std = sqrt((double)job->variance[q]), by_variance = 0;
        for (int m = 0; m < M; m++)
            for (int s = 0; s < S; s++) {
                double by = job->by_coefficients[((long)s * Q + q) * M + m];
                by_values[m * S + s] = by * std;
                by_variance += by * unscaled[m * S + s];
            }
        job->by_variance[q] = (float)(by_variance / (2 * std));
        solve(factor, M, S, by_values);
        memcpy(less, by_values, sizeof(double) * M * S);
        solve_transposed(factor, M, S, less);
    }
}

/* All that the lengthscale does is to scale Z and theta. */
static void scale_gradients(const Back *back) {
    const Matheron *job = back->job;
    int Q = job->forces, M = job->points, P = job->inputs, sets = sets_of(job), B = job->basis;
    for (int q = 0; q < Q; q++) {
        int set = sets > 1 ? q : 0;
        const float *ell = ell_of(job, set);
        float *by_ell = job->by_ell + (job->ell_rows > 1 ? set * P : 0);
        float *by_z = job->by_z + (job->z_rows > 1 ? (long)set * M * P : 0);
        for (int b = 0; b < B * P; b++) {
            long at = (long)q * B * P + b;
            by_ell[b % P] -= job->by_theta[at] * job->theta[at] / ell[b % P];
        }
        for (int i = 0; i < M * P; i++) {
            double by = back->through_waves[(long)q * M * P + i];
            if (sets > 1 || q == 0) by += back->through_gram[(long)set * M * P + i];
            by_z[i] += (float)(by / ell[i % P]);
            by_ell[i % P] -= (float)(by * job->scaled[(long)set * M * P + i] / ell[i % P]);
        }
    }
}

int matheron_backward(const Matheron *job, int threads) {
    int Q = job->forces, M = job->points, sets = sets_of(job);
    long block = (long)Q * M * job->samples, points = (long)M * job->inputs;
    double *memory = malloc(sizeof(double) * (2 * block + (sets + Q) * points));
    if (memory == NULL) return 0;
    double *through = memory + 2 * block;
    Back back = {job, memory, memory + block, through, through + sets * points};
    residual_gradients(&back);
    bool enough = each_task(back_part, &back, sets + Q, threads);
    if (enough) scale_gradients(&back);
    free(memory);
    return enough;
}
