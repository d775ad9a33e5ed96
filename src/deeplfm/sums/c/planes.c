/* Sums of plane waves, which run along all inputs at once, and the weights that an ODE gives them.

       sums[s,n,c] += sum_b cos(omega_b x_n) cosine[s,b,c] + sin(omega_b x_n) sine[s,b,c]

   No wave is kept: a task walks over them with a block of points in the nearest cache. */
#include <complex.h>

#include "maths.h"
#include "tasks.h"

typedef struct {
    Split split;
    int inputs, columns, waves;
    const float *x; /* [batches, N, P], with strides */
    long x_s, x_n, x_p;
    const float *omega, *cosine, *sine; /* [B,P] [S,B,C] [S,B,C] */
    float *out;                         /* [S,N,C] */
    const float *gradient;              /* [S,N,C], with strides */
    long g_s, g_n, g_c;
    float *by_x;       /* [batches, N, P], added to */
    float *by_omega;   /* [tasks, B, P] */
    float *by_weights; /* [chunks, 2, S, B, C] */
} Job;

/* cos and sin of a wave; each input has its whole turns taken off, or rounding would take more. */
static void waves(const float *x, const float *omega, int inputs, float *cosine, float *sine,
                  int n) {
    for (int p = 0; p < inputs; p++) {
        double turn = omega[p] * 0.15915494309189535;
        float high = (float)turn, low = (float)(turn - high);
        const float *own = x + p * BLOCK;
        if (p == 0)
            SIMD for (int i = 0; i < n; i++) sine[i] = turns(own[i], high, low);
        else
            SIMD for (int i = 0; i < n; i++) sine[i] += turns(own[i], high, low);
    }
    SIMD for (int i = 0; i < n; i++) {
        float f = sine[i] - floorf(sine[i] + 0.5f);
        float half = sine_of_half_turns(f), other = cosine_of_half_turns(f);
        cosine[i] = 1 - 2 * half * half;
        sine[i] = 2 * half * other;
    }
}

static bool forward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, C = job->columns, B = job->waves, E = job->split.each;
    Part part = part_of(&job->split, task);
    float *x = scratch((long)(P + 2 + E * C) * BLOCK);
    if (x == NULL) return false;
    float *cosine = x + P * BLOCK, *sine = cosine + BLOCK, *total = sine + BLOCK;
    long first = (long)part.batch * E, size = (long)B * C;
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        for (int p = 0; p < P; p++)
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 x + p * BLOCK);
        memset(total, 0, sizeof(float) * E * C * BLOCK);
        for (int b = 0; b < B; b++) {
            waves(x, job->omega + b * P, P, cosine, sine, n);
            for (int e = 0; e < E; e++)
                for (int c = 0; c < C; c++) {
                    long at = (first + e) * size + b * C + c;
                    float *own = total + (e * C + c) * BLOCK;
                    float even = job->cosine[at], odd = job->sine[at];
                    SIMD for (int i = 0; i < n; i++) own[i] += even * cosine[i] + odd * sine[i];
                }
        }
        for (int e = 0; e < E; e++) {
            float *out = job->out + ((first + e) * job->split.points + from) * C;
            for (int i = 0; i < count; i++)
                for (int c = 0; c < C; c++)
                    out[(long)i * C + c] += total[(e * C + c) * BLOCK + i];
        }
    }
    return true;
}

/* One wave: gradients of its weights, and the slope along its phase. */
static void wave_backward(const Job *job, int first, int b, const float *cosine, const float *sine,
                          const float *gradient, float *by_weights, float *slope, float *other,
                          int n) {
    int C = job->columns, E = job->split.each;
    long size = (long)job->waves * C, samples = (long)job->split.batches * E;
    memset(slope, 0, sizeof(float) * BLOCK);
    memset(other, 0, sizeof(float) * BLOCK);
    for (int e = 0; e < E; e++)
        for (int c = 0; c < C; c++) {
            const float *own = gradient + (e * C + c) * BLOCK;
            long at = (first + e) * size + b * C + c;
            float even = job->cosine[at], odd = job->sine[at], by_even = 0, by_odd = 0;
#pragma omp simd reduction(+ : by_even, by_odd)
            for (int i = 0; i < n; i++) {
                slope[i] += odd * own[i];
                other[i] += even * own[i];
                by_even += own[i] * cosine[i];
                by_odd += own[i] * sine[i];
            }
            by_weights[at] += by_even;
            by_weights[samples * size + at] += by_odd;
        }
    SIMD for (int i = 0; i < n; i++) slope[i] = slope[i] * cosine[i] - other[i] * sine[i];
}

static bool backward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, C = job->columns, B = job->waves, E = job->split.each;
    Part part = part_of(&job->split, task);
    float *x = scratch((long)(2 * P + 4 + E * C) * BLOCK);
    if (x == NULL) return false;
    float *by_x = x + P * BLOCK, *cosine = by_x + P * BLOCK, *sine = cosine + BLOCK;
    float *slope = sine + BLOCK, *other = slope + BLOCK, *gradient = other + BLOCK;
    long first = (long)part.batch * E, size = (long)B * C, all = size * job->split.batches * E;
    float *by_weights = job->by_weights + part.chunk * 2 * all;
    float *by_omega = job->by_omega + (long)task * B * P;
    memset(by_weights + first * size, 0, sizeof(float) * E * size);
    memset(by_weights + all + first * size, 0, sizeof(float) * E * size);
    memset(by_omega, 0, sizeof(float) * B * P);
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        for (int p = 0; p < P; p++)
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 x + p * BLOCK);
        for (int e = 0; e < E; e++)
            for (int c = 0; c < C; c++)
                load_or_zero(
                    job->gradient + (first + e) * job->g_s + from * job->g_n + c * job->g_c,
                    job->g_n, count, gradient + (e * C + c) * BLOCK);
        memset(by_x, 0, sizeof(float) * P * BLOCK);
        for (int b = 0; b < B; b++) {
            waves(x, job->omega + b * P, P, cosine, sine, n);
            wave_backward(job, first, b, cosine, sine, gradient, by_weights, slope, other, n);
            for (int p = 0; p < P; p++) {
                float omega = job->omega[b * P + p], *along = by_x + p * BLOCK;
                SIMD for (int i = 0; i < n; i++) along[i] += omega * slope[i];
                by_omega[b * P + p] += dot(slope, x + p * BLOCK, n);
            }
        }
        float *out = job->by_x + ((long)part.batch * job->split.points + from) * P;
        for (int i = 0; i < count; i++)
            for (int p = 0; p < P; p++) out[i * P + p] += by_x[p * BLOCK + i];
    }
    return true;
}

int plane_sums(const Job *job, int threads) {
    return each_task(forward, job, tasks_of(&job->split), threads);
}

/* `by_omega` and `by_weights` end as the sums over tasks and chunks, in their first row. */
int plane_sums_backward(const Job *job, int threads) {
    if (!each_task(backward, job, tasks_of(&job->split), threads)) return 0;
    long width = (long)job->waves * job->inputs;
    long weights = 2L * job->split.batches * job->split.each * job->waves * job->columns;
    add_rows(job->by_omega, tasks_of(&job->split), width, width, job->by_omega);
    add_rows(job->by_weights, job->split.chunks, weights, weights, job->by_weights);
    return 1;
}

/* What a first-order ODE makes of a draw of the prior: weights of cos and sin,

       cosine - j sine = sensitivity[d,q] amplitude[s,q,b] e^{j phase_b} / prod_p (decay_dp + j omega_bp)

   each [S,B,D]. Small: on one thread, in double precision. */
typedef struct {
    int samples, inputs, outputs, forces, count;
    const float *omega, *phase, *decay, *sensitivities, *amplitude; /* [QB,P] [QB] [D,P] [D,Q] [S,QB] */
    float *cosine, *sine;                                          /* with gradients: these in turn */
    float *by_omega, *by_decay, *by_sensitivities, *by_amplitude;
} WaveWeights;

static double complex answer(const WaveWeights *job, int b, int d) {
    int P = job->inputs;
    double complex value = cexp(I * (double)job->phase[b]);
    for (int p = 0; p < P; p++) value /= job->decay[d * P + p] + I * job->omega[b * P + p];
    return value;
}

int wave_weights(const WaveWeights *job, int threads) {
    (void)threads;
    int Q = job->forces, B = Q * job->count;
    for (int b = 0; b < B; b++)
        for (int d = 0; d < job->outputs; d++) {
            double complex value = answer(job, b, d) * job->sensitivities[d * Q + b / job->count];
            double real = creal(value), imag = cimag(value);
            for (int s = 0; s < job->samples; s++) {
                long at = ((long)s * B + b) * job->outputs + d;
                float amplitude = job->amplitude[(long)s * B + b];
                job->cosine[at] = (float)(amplitude * real);
                job->sine[at] = (float)(-amplitude * imag);
            }
        }
    return 1;
}

/* `by_omega`, `by_decay`, `by_sensitivities` and `by_amplitude` start at zero. */
int wave_weights_backward(const WaveWeights *job, int threads) {
    (void)threads;
    int Q = job->forces, B = Q * job->count, P = job->inputs;
    for (int b = 0; b < B; b++)
        for (int d = 0; d < job->outputs; d++) {
            int q = b / job->count;
            double complex value = answer(job, b, d), total = 0;
            float sensitivity = job->sensitivities[d * Q + q];
            for (int s = 0; s < job->samples; s++) {
                long at = ((long)s * B + b) * job->outputs + d;
                double complex gradient = job->cosine[at] + I * job->sine[at];
                total += job->amplitude[(long)s * B + b] * gradient;
                job->by_amplitude[(long)s * B + b] += (float)(sensitivity * creal(gradient * value));
            }
            total *= value;
            job->by_sensitivities[d * Q + q] += (float)creal(total);
            total *= sensitivity;
            for (int p = 0; p < P; p++) {
                double complex pole = job->decay[d * P + p] + I * job->omega[b * P + p];
                job->by_decay[d * P + p] -= (float)creal(total / pole);
                job->by_omega[b * P + p] += (float)cimag(total / pole);
            }
        }
    return 1;
}

long size_of_planes(void) { return sizeof(Job); }
long size_of_wave_weights(void) { return sizeof(WaveWeights); }
