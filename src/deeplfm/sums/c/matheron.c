/* A draw of the posterior in training by Matheron's rule; formulas as in `sums/matheron_draw.py`.

       c = sigma c',  c' = L^{-T} b,  b = v' - L^{-1} r
       r = sqrt(2/B) sum_i w_i cos(xi_i s + beta_i) + sqrt(eps) eta
       L L' = K + eps I,  K_ij = exp(-|s_i - s_j|^2 / 2),  s = Z/ell,  theta = xi/ell

   For few inducing points, where most of the time would be calls of small operations. In double
   precision, but for the waves; one thread. Matrices are rows one after the other. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "matheron.h"

/* K, and L below its diagonal; false where there is none. */
static bool factorise(const double *scaled, int points, int inputs, double jitter, double *gram,
                      double *factor) {
    for (int i = 0; i < points; i++)
        for (int j = 0; j <= i; j++) {
            double distance = 0;
            for (int p = 0; p < inputs; p++) {
                double lag = scaled[i * inputs + p] - scaled[j * inputs + p];
                distance += lag * lag;
            }
            gram[i * points + j] = gram[j * points + i] = exp(-distance / 2);
        }
    for (int i = 0; i < points; i++)
        for (int j = 0; j <= i; j++) {
            const double *a = factor + i * points, *b = factor + j * points;
            double rest = gram[i * points + j] + (i == j ? jitter : 0), known = 0;
#pragma omp simd reduction(+ : known)
            for (int k = 0; k < j; k++) known += a[k] * b[k];
            rest -= known;
            if (i == j && !(rest > 0)) return false;
            factor[i * points + j] = i == j ? sqrt(rest) : rest / factor[j * points + j];
        }
    return true;
}

/* v' = mu0 + C0 (u a + B noise) of one force; `rest` is of the same size. */
static void draw_values(const Matheron *job, int q, double *values, double *rest) {
    int M = job->points, S = job->samples;
    const float *noise = job->noise + (long)q * M * S;
    for (int i = 0; i < M; i++) {
        double *own = rest + (long)i * S, start = job->unit * job->shift[q * M + i];
        double diagonal = exp((double)job->log_diagonal[q * M + i]);
        const float *below = job->below + ((long)q * M + i) * M;
        for (int s = 0; s < S; s++) own[s] = start + diagonal * noise[i * S + s];
        for (int k = 0; k < i; k++)
            SIMD for (int s = 0; s < S; s++) own[s] += (double)below[k] * noise[k * S + s];
    }
    for (int i = 0; i < M; i++) {
        double *own = values + (long)i * S;
        const float *frame = job->frame + ((long)q * M + i) * M;
        for (int s = 0; s < S; s++) own[s] = job->center[q * M + i];
        for (int k = 0; k <= i; k++) {
            const double *other = rest + (long)k * S;
            SIMD for (int s = 0; s < S; s++) own[s] += (double)frame[k] * other[s];
        }
    }
}

/* r of one force, and its phases in turns. */
static void draw_known(const Matheron *job, int q, const double *scaled, double *known,
                       float *wave) {
    int M = job->points, S = job->samples, B = job->basis, P = job->inputs;
    double root = sqrt(job->jitter);
    float size = (float)sqrt(2.0 / B);
    for (int m = 0; m < M; m++) {
        float *turns = job->turns + ((long)q * M + m) * B;
        const float *xi = job->xi + (long)q * B * P;
        for (int b = 0; b < B; b++) {
            double phase = job->phase[q * B + b];
            for (int p = 0; p < P; p++) phase += scaled[m * P + p] * xi[b * P + p];
            phase *= 0.15915494309189535;
            turns[b] = (float)(phase - floor(phase + 0.5));
        }
        SIMD for (int b = 0; b < B; b++) {
            float half = sine_of_half_turns(turns[b]);
            wave[b] = size * (1 - 2 * half * half);
        }
        for (int s = 0; s < S; s++)
            known[m * S + s] = dot(wave, job->weights + ((long)s * job->forces + q) * B, B) +
                               root * job->eta[((long)q * M + m) * S + s];
    }
}

/* A factor, or the values and what is known of one force: neither needs another. */
static bool draw_part(const void *argument, int task) {
    const Matheron *job = argument;
    int M = job->points, P = job->inputs, S = job->samples, sets = sets_of(job);
    if (task < sets) {
        const double *scaled = job->scaled + (long)task * M * P;
        long at = (long)task * M * M;
        job->fine[task] = factorise(scaled, M, P, job->jitter, job->gram + at, job->factor + at);
        return true;
    }
    int q = task - sets;
    double *rest = malloc(sizeof(double) * M * S);
    float *wave = malloc(sizeof(float) * job->basis);
    bool enough = rest != NULL && wave != NULL;
    if (enough) {
        draw_values(job, q, job->values + (long)q * M * S, rest);
        draw_known(job, q, job->scaled + (long)(sets > 1 ? q : 0) * M * P,
                   job->unscaled + (long)q * M * S, wave);
    }
    free(rest);
    free(wave);
    return enough;
}

int matheron(const Matheron *job, int threads) {
    int Q = job->forces, M = job->points, P = job->inputs, S = job->samples, sets = sets_of(job);
    for (int k = 0; k < sets; k++) {
        const float *z = job->z + (job->z_rows > 1 ? (long)k * M * P : 0), *ell = ell_of(job, k);
        for (int i = 0; i < M * P; i++)
            job->scaled[(long)k * M * P + i] = (double)z[i] / ell[i % P];
    }
    if (!each_task(draw_part, job, sets + Q, threads)) return 0;
    for (int q = 0; q < Q; q++) {
        int set = sets > 1 ? q : 0;
        bool fine = job->fine[set];
        const double *factor = job->factor + (long)set * M * M;
        double *values = job->values + (long)q * M * S, *rest = job->unscaled + (long)q * M * S;
        if (fine) solve(factor, M, S, rest);
        for (int i = 0; i < M * S; i++) rest[i] = values[i] - rest[i];
        if (fine) solve_transposed(factor, M, S, rest);
        double std = fine ? sqrt((double)job->variance[q]) : NAN;
        for (int s = 0; s < S; s++)
            for (int m = 0; m < M; m++)
                job->coefficients[((long)s * Q + q) * M + m] = (float)(std * rest[m * S + s]);
        for (int b = 0; b < job->basis * P; b++)
            job->theta[(long)q * job->basis * P + b] =
                job->xi[(long)q * job->basis * P + b] / ell_of(job, set)[b % P];
    }
    return 1;
}

long size_of_matheron(void) { return sizeof(Matheron); }
