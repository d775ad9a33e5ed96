/* Sums of first-order bump responses with infinite memory; formulas as in `triton/bump_kernels.py`.

       sums[s,n,d] = sum_qj weights[s,d,q,j] prod_p h(x_np - z_qjp; gamma_dp, ell_qp)

   No bump is kept: a task walks over the centers with a block of points in the nearest cache. */
#include <stdlib.h>

#include "maths.h"
#include "tasks.h"

#define ROOT_TWO_PI 2.5066282746f

typedef struct {
    Split split;
    int inputs, outputs, forces, count;
    const float *x; /* [batches, N, P], with strides */
    long x_s, x_n, x_p;
    const float *centers, *scale, *decay, *weights; /* [Q,M,P] [Q,P] [D,P] [S,D,Q,M] */
    float *out;                                     /* [S,N,D] */
    const float *gradient;                          /* [S,N,D], with strides */
    long g_s, g_n, g_d;
    float *by_x;          /* [batches, N, P] */
    float *by_parameters; /* [tasks, QMP + QP + DP] */
    float *by_weights;    /* [chunks, S, D, Q, M] */
    float *by_centers, *by_scale, *by_decay;
} Job;

/* k_0 and k_1 of the response: `far` ahead of a center the growing part is one exponent. */
INLINE float zeroth(float t, float here, float kappa, float inverse) {
    float m = kappa - t, z = zeroth_moment(inverse);
    float exponent = kappa * (0.5f * kappa - t);
    float growth = exponential(m < 0 ? exponent : lowest_exponent) * ROOT_TWO_PI;
    return growth + copysignf(here * z, m);
}

INLINE void lags(const float *x, float center, float inverse, float *t, float *here, int n) {
    SIMD for (int i = 0; i < n; i++) {
        float lag = (x[i] - center) * inverse;
        t[i] = lag;
        here[i] = exponential(-0.5f * lag * lag);
    }
}

static bool forward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, D = job->outputs, Q = job->forces, M = job->count, E = job->split.each;
    Part part = part_of(&job->split, task);
    float *x = scratch((long)(P + 2 + D + E * D) * BLOCK);
    if (x == NULL) return false;
    float *t = x + P * BLOCK, *here = t + BLOCK, *product = here + BLOCK;
    float *total = product + D * BLOCK;
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        for (int p = 0; p < P; p++)
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 x + p * BLOCK);
        memset(total, 0, sizeof(float) * E * D * BLOCK);
        for (int j = 0; j < Q * M; j++) {
            const float *scale = job->scale + j / M * P;
            for (int p = 0; p < P; p++) {
                lags(x + p * BLOCK, job->centers[j * P + p], 1 / scale[p], t, here, n);
                for (int d = 0; d < D; d++) {
                    float ell = scale[p], kappa = job->decay[d * P + p] * ell;
                    float *own = product + d * BLOCK;
                    if (p == 0)
                        SIMD for (int i = 0; i < n; i++)
                            own[i] = ell * zeroth(t[i], here[i], kappa,
                                                  1 / (fabsf(kappa - t[i]) + 4));
                    else
                        SIMD for (int i = 0; i < n; i++)
                            own[i] *= ell * zeroth(t[i], here[i], kappa,
                                                   1 / (fabsf(kappa - t[i]) + 4));
                }
            }
            for (int e = 0; e < E; e++)
                for (int d = 0; d < D; d++) {
                    long s = (long)part.batch * E + e;
                    float weight = job->weights[(s * D + d) * Q * M + j];
                    float *sums = total + (e * D + d) * BLOCK, *own = product + d * BLOCK;
                    SIMD for (int i = 0; i < n; i++) sums[i] += weight * own[i];
                }
        }
        for (int e = 0; e < E; e++)
            for (int i = 0; i < count; i++)
                for (int d = 0; d < D; d++) {
                    long s = (long)part.batch * E + e;
                    job->out[(s * job->split.points + from + i) * D + d] =
                        total[(e * D + d) * BLOCK + i];
                }
    }
    return true;
}

/* The response of one input and output and its slopes in z, ell and gamma. */
INLINE void slopes(const float *t, const float *here, float ell, float kappa, float *value,
                   float *by_center, float *by_scale, float *by_decay, int n) {
    SIMD for (int i = 0; i < n; i++) {
        float m = kappa - t[i], a = fabsf(m), inverse = 1 / (a + 4);
        float exponent = kappa * (0.5f * kappa - t[i]);
        float growth = exponential(m < 0 ? exponent : lowest_exponent) * ROOT_TWO_PI;
        float k0 = growth + copysignf(here[i] * zeroth_moment(inverse), m);
        float k1 = fmaf(growth, a, here[i] * first_moment(inverse));
        float k2 = k0 - m * k1;
        float late_center = kappa * k0 - here[i], center = t[i] * k0 - k1;
        float late_scale = (1 + kappa * kappa) * k0 - (t[i] + kappa) * here[i];
        float scale = t[i] * (t[i] * k0 - 2 * k1) + k2;
        value[i] = ell * k0;
        by_center[i] = fabsf(t[i]) > kappa ? late_center : center;
        by_scale[i] = fabsf(t[i]) > kappa ? late_scale : scale;
        by_decay[i] = -ell * ell * k1;
    }
}

/* Memory of the backward pass, [P or D or both, BLOCK] each. */
typedef struct {
    float *x, *by_x, *t, *here, *value, *center, *scale, *decay, *after;
    float *by_center, *by_scale, *by_decay, *gradient, *weight;
} Room;

static bool room_of(const Job *job, Room *room) {
    int P = job->inputs, D = job->outputs, E = job->split.each;
    float **parts[] = {&room->x,      &room->by_x,  &room->t,     &room->here,      &room->value,
                       &room->center, &room->scale, &room->decay, &room->by_center, &room->by_scale,
                       &room->by_decay, &room->after, &room->weight, &room->gradient};
    int widths[] = {P, P, P, P, P, P, P, P, P, P, D * P, 1, 1, E * D};
    long total = 0;
    for (int k = 0; k < 14; k++) total += widths[k];
    float *memory = scratch(total * BLOCK);
    if (memory == NULL) return false;
    for (int k = 0; k < 14; k++) {
        *parts[k] = memory;
        memory += (long)widths[k] * BLOCK;
    }
    return true;
}

/* One output of one center: adds to the gradients of its inputs, and leaves the product in `after`. */
INLINE void product_slopes(const Job *job, const Room *r, int d, int q, int n) {
    int P = job->inputs;
    for (int p = 0; p < P; p++) {
        float ell = job->scale[q * P + p];
        slopes(r->t + p * BLOCK, r->here + p * BLOCK, ell, job->decay[d * P + p] * ell,
               r->value + p * BLOCK, r->center + p * BLOCK, r->scale + p * BLOCK,
               r->decay + p * BLOCK, n);
    }
    for (int p = 0; p < P; p++) {
        float *others = r->after;
        SIMD for (int i = 0; i < n; i++) others[i] = r->weight[i];
        for (int k = 0; k < P; k++)
            if (k != p)
                SIMD for (int i = 0; i < n; i++) others[i] *= r->value[k * BLOCK + i];
        float *by_center = r->by_center + p * BLOCK, *by_scale = r->by_scale + p * BLOCK;
        float *by_decay = r->by_decay + (d * P + p) * BLOCK;
        const float *center = r->center + p * BLOCK, *scale = r->scale + p * BLOCK;
        const float *decay = r->decay + p * BLOCK;
        SIMD for (int i = 0; i < n; i++) {
            by_center[i] += others[i] * center[i];
            by_scale[i] += others[i] * scale[i];
            by_decay[i] += others[i] * decay[i];
        }
    }
    SIMD for (int i = 0; i < n; i++) r->after[i] = r->value[i];
    for (int p = 1; p < P; p++)
        SIMD for (int i = 0; i < n; i++) r->after[i] *= r->value[p * BLOCK + i];
}

static void block_backward(const Job *job, const Room *r, Part part, float *by_parameters,
                           float *by_weights, int n) {
    int P = job->inputs, D = job->outputs, Q = job->forces, M = job->count, E = job->split.each;
    float *by_centers = by_parameters, *by_scales = by_centers + Q * M * P;
    memset(r->by_x, 0, sizeof(float) * P * BLOCK);
    memset(r->by_decay, 0, sizeof(float) * D * P * BLOCK);
    for (int q = 0; q < Q; q++) {
        memset(r->by_scale, 0, sizeof(float) * P * BLOCK);
        for (int j = q * M; j < (q + 1) * M; j++) {
            memset(r->by_center, 0, sizeof(float) * P * BLOCK);
            for (int p = 0; p < P; p++)
                lags(r->x + p * BLOCK, job->centers[j * P + p], 1 / job->scale[q * P + p],
                     r->t + p * BLOCK, r->here + p * BLOCK, n);
            for (int d = 0; d < D; d++) {
                memset(r->weight, 0, sizeof(float) * BLOCK);
                for (int e = 0; e < E; e++) {
                    long at = (((long)part.batch * E + e) * D + d) * Q * M + j;
                    float weight = job->weights[at];
                    const float *gradient = r->gradient + (e * D + d) * BLOCK;
                    SIMD for (int i = 0; i < n; i++) r->weight[i] += weight * gradient[i];
                }
                product_slopes(job, r, d, q, n);
                for (int e = 0; e < E; e++)
                    by_weights[(((long)part.batch * E + e) * D + d) * Q * M + j] +=
                        dot(r->after, r->gradient + (e * D + d) * BLOCK, n);
            }
            for (int p = 0; p < P; p++) {
                const float *own = r->by_center + p * BLOCK;
                float *by_x = r->by_x + p * BLOCK;
                SIMD for (int i = 0; i < n; i++) by_x[i] -= own[i];
                by_centers[j * P + p] += sum(own, n);
            }
        }
        for (int p = 0; p < P; p++) by_scales[q * P + p] += sum(r->by_scale + p * BLOCK, n);
    }
    for (int k = 0; k < D * P; k++) by_scales[Q * P + k] += sum(r->by_decay + k * BLOCK, n);
}

static bool backward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, D = job->outputs, Q = job->forces, M = job->count, E = job->split.each;
    Part part = part_of(&job->split, task);
    Room room;
    if (!room_of(job, &room)) return false;
    long width = (long)(Q * M + Q + D) * P, own = (long)E * D * Q * M;
    float *by_parameters = job->by_parameters + task * width;
    float *by_weights = job->by_weights + part.chunk * job->split.batches * own;
    memset(by_parameters, 0, sizeof(float) * width);
    memset(by_weights + part.batch * own, 0, sizeof(float) * own);
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        for (int p = 0; p < P; p++)
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 room.x + p * BLOCK);
        for (int e = 0; e < E; e++)
            for (int d = 0; d < D; d++) {
                long s = (long)part.batch * E + e;
                load_or_zero(job->gradient + s * job->g_s + from * job->g_n + d * job->g_d,
                             job->g_n, count, room.gradient + (e * D + d) * BLOCK);
            }
        block_backward(job, &room, part, by_parameters, by_weights, n);
        float *by_x = job->by_x + ((long)part.batch * job->split.points + from) * P;
        for (int i = 0; i < count; i++)
            for (int p = 0; p < P; p++) by_x[i * P + p] = room.by_x[p * BLOCK + i];
    }
    return true;
}

int bump_sums(const Job *job, int threads) {
    return each_task(forward, job, tasks_of(&job->split), threads);
}

/* `by_weights` ends as the sum over chunks, in its first row; those of parameters are written. */
int bump_sums_backward(const Job *job, int threads) {
    if (!each_task(backward, job, tasks_of(&job->split), threads)) return 0;
    int tasks = tasks_of(&job->split);
    long centers = (long)job->forces * job->count * job->inputs, scales = job->forces * job->inputs;
    long decays = (long)job->outputs * job->inputs, width = centers + scales + decays;
    long weights = (long)job->split.batches * job->split.each * job->outputs * job->forces *
                   job->count;
    const float *rows = job->by_parameters;
    add_rows(rows, tasks, width, centers, job->by_centers);
    add_rows(rows + centers, tasks, width, scales, job->by_scale);
    add_rows(rows + centers + scales, tasks, width, decays, job->by_decay);
    if (job->split.chunks > 1)
        add_rows(job->by_weights, job->split.chunks, weights, weights, job->by_weights);
    return 1;
}

long size_of_bumps(void) { return sizeof(Job); }
