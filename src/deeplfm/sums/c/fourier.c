/* A Fourier layer of first order that starts from rest, summed over some of its inputs.

       f[s,n,d] = sum_pr Re(H B) cosine[s,d,r] + Im(H B) sine[s,d,r],   H = |a|/sqrt(R)/(gamma + j omega)
       B = e^{j omega |x|} - e^{-gamma |x|};   before the origin the real part has the other sign

   Frequencies are of groups of outputs, G of them. No wave is kept: a task walks over them with a
   block of points in the nearest cache. */
#include "fourier.h"

#include "maths.h"

/* What the waves of one input and group have in common, and one of them: [BLOCK] each. */
typedef struct {
    float *x, *lag, *side, *rise, *fade, *even, *odd, *cosine;
} Wave;

#define WAVE 8

static Wave wave_of(float *memory) {
    return (Wave){memory,
                  memory + BLOCK,     memory + 2 * BLOCK, memory + 3 * BLOCK, memory + 4 * BLOCK,
                  memory + 5 * BLOCK, memory + 6 * BLOCK, memory + 7 * BLOCK};
}

/* Distances of points from the origin; whether some of them are before it. */
static bool lags(const Fourier *job, const Wave *w, int from, int n) {
    int after = job->after ? job->after - from : n;
    float lowest = 1;
    for (int i = 0; i < n; i++) {
        float side = job->after ? 1.0f : copysignf(1.0f, w->x[i]);
        w->lag[i] = side * w->x[i];
        w->side[i] = i < after ? side : -1.0f;
    }
    for (int i = 0; i < n; i++) lowest = w->side[i] < lowest ? w->side[i] : lowest;
    return lowest < 0;
}

static void transient(const Wave *w, float gamma, int n) {
    SIMD for (int i = 0; i < n; i++) {
        float u = gamma * w->lag[i];
        w->fade[i] = exponential(-u);
        w->rise[i] = rise(u, w->fade[i]);
    }
}

/* cos - fade, sin, and cos of one frequency, over |x|. */
INLINE void oscillation(const Wave *w, float high, float low, int n) {
    float *even = w->even, *odd = w->odd, *cosine = w->cosine;
    const float *lag = w->lag, *rising = w->rise;
    SIMD for (int i = 0; i < n; i++) {
        float f = turns(lag[i], high, low);
        float half = sine_of_half_turns(f), other = cosine_of_half_turns(f);
        float versine = 2 * half * half;
        even[i] = rising[i] - versine;
        odd[i] = 2 * half * other;
        cosine[i] = 1 - versine;
    }
}

/* Weights of `even` and `odd` at either side of the origin: (a, b) here, (c, d) times the side. */
typedef struct {
    float a, b, c, d;
} Weights;

INLINE Weights folded(const float *weights, int r, int count, float real, float imag) {
    int q = r / count;
    float cosine = weights[q * count + r], sine = weights[(q + 1) * count + r];
    return (Weights){imag * sine, real * sine, real * cosine, -imag * cosine};
}

INLINE const float *table_of(const Fourier *job, int g, int p) {
    return job->table + ((long)g * job->inputs + p) * 4 * job->forces * job->count;
}

static void add_group(const Fourier *job, const Wave *w, Part part, int g, int p, bool before,
                      float *total, int n) {
    int D = job->outputs, own = D / job->groups, R = job->forces * job->count, E = job->split.each;
    const float *table = table_of(job, g, p);
    transient(w, job->decay[g * job->inputs + p], n);
    for (int r = 0; r < R; r++) {
        oscillation(w, table[r], table[R + r], n);
        for (int e = 0; e < E; e++)
            for (int d = g * own; d < (g + 1) * own; d++) {
                const float *weights = job->weights + (((long)part.batch * E + e) * D + d) * 2 * R;
                Weights k = folded(weights, r, job->count, table[2 * R + r], table[3 * R + r]);
                float *sums = total + (e * D + d) * BLOCK;
                const float *even = w->even, *odd = w->odd, *side = w->side;
                if (before)
                    SIMD for (int i = 0; i < n; i++)
                        sums[i] += even[i] * (k.a + side[i] * k.c) + odd[i] * (k.b + side[i] * k.d);
                else {
                    float a = k.a + k.c, b = k.b + k.d;
                    SIMD for (int i = 0; i < n; i++) sums[i] += even[i] * a + odd[i] * b;
                }
            }
    }
}

static bool forward(const void *argument, int task) {
    const Fourier *job = argument;
    int D = job->outputs, E = job->split.each;
    Part part = part_of(&job->split, task);
    float *total = scratch((long)(WAVE + E * D) * BLOCK);
    if (total == NULL) return false;
    Wave w = wave_of(total + E * D * BLOCK);
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        memset(total, 0, sizeof(float) * E * D * BLOCK);
        for (int p = job->first; p < job->last; p++) {
            load(job->x + part.batch * job->x_s + from * job->x_n + (p - job->first) * job->x_p,
                 job->x_n, count, w.x);
            bool before = lags(job, &w, from, n);
            for (int g = 0; g < job->groups; g++)
                add_group(job, &w, part, g, p, before, total, n);
        }
        for (int e = 0; e < E; e++) {
            float *out = job->out + (((long)part.batch * E + e) * job->split.points + from) * D;
            for (int i = 0; i < count; i++)
                for (int d = 0; d < D; d++) out[i * D + d] += total[(e * D + d) * BLOCK + i];
        }
    }
    return true;
}

/* Memory of the backward pass, [BLOCK] each but for the gradients. */
typedef struct {
    Wave w;
    float *by_even, *by_odd, *by_lag, *by_fade;
    float *gradient, *sided; /* [E D, BLOCK]; the second times the side of the origin */
} Room;

/* Gradients of one output of one sample: of its weights, of H, and of the waves. */
INLINE void one_output(const Room *r, const float *gradient, const float *sided, bool before,
                       Weights k, const float *weights, float *by_weights, float *by_table, int at,
                       int sine_at, float real, float imag, int n) {
    const Wave *w = &r->w;
    float *by_even = r->by_even, *by_odd = r->by_odd;
    const float *at_even = w->even, *at_odd = w->odd;
    float even = 0, odd = 0, even_side = 0, odd_side = 0, a = k.a + k.c, b = k.b + k.d;
    if (before) {
#pragma omp simd reduction(+ : even, odd, even_side, odd_side)
        for (int i = 0; i < n; i++) {
            by_even[i] += k.a * gradient[i] + k.c * sided[i];
            by_odd[i] += k.b * gradient[i] + k.d * sided[i];
            even += gradient[i] * at_even[i];
            odd += gradient[i] * at_odd[i];
            even_side += sided[i] * at_even[i];
            odd_side += sided[i] * at_odd[i];
        }
    } else {
#pragma omp simd reduction(+ : even, odd)
        for (int i = 0; i < n; i++) {
            by_even[i] += a * gradient[i];
            by_odd[i] += b * gradient[i];
            even += gradient[i] * at_even[i];
            odd += gradient[i] * at_odd[i];
        }
        even_side = even;
        odd_side = odd;
    }
    float cosine = weights[at], sine = weights[sine_at];
    by_weights[at] += real * even_side - imag * odd_side;
    by_weights[sine_at] += imag * even + real * odd;
    by_table[0] += sine * odd + cosine * even_side;
    by_table[1] += sine * even - cosine * odd_side;
}

static void group_backward(const Fourier *job, const Room *room, Part part, int g, int p, bool before,
                           float *by_table, float *by_weights, int n) {
    int D = job->outputs, own = D / job->groups, R = job->forces * job->count, E = job->split.each;
    const Wave *w = &room->w;
    const float *table = table_of(job, g, p);
    float gamma = job->decay[g * job->inputs + p], *by_lag = room->by_lag, *by_fade = room->by_fade;
    transient(w, gamma, n);
    memset(by_fade, 0, sizeof(float) * BLOCK);
    for (int r = 0; r < R; r++) {
        float real = table[2 * R + r], imag = table[3 * R + r], by[2] = {0, 0};
        oscillation(w, table[r], table[R + r], n);
        memset(room->by_even, 0, sizeof(float) * 2 * BLOCK);
        for (int e = 0; e < E; e++)
            for (int d = g * own; d < (g + 1) * own; d++) {
                long s = (long)part.batch * E + e, at = (s * D + d) * 2 * R;
                int k = (e * D + d) * BLOCK, here = r / job->count * job->count + r;
                one_output(room, room->gradient + k, room->sided + k, before,
                           folded(job->weights + at, r, job->count, real, imag), job->weights + at,
                           by_weights + at, by, here, here + job->count, real, imag, n);
            }
        const float *by_even = room->by_even, *cosine = w->cosine, *odd = w->odd;
        float omega = (table[r] + table[R + r]) * 6.283185307f, *slope = room->by_odd;
        SIMD for (int i = 0; i < n; i++) {
            slope[i] = slope[i] * cosine[i] - by_even[i] * odd[i];
            by_fade[i] += by_even[i];
            by_lag[i] += omega * slope[i];
        }
        by_table[r] += by[0];
        by_table[R + r] += by[1];
        by_table[2 * R + r] += dot(slope, w->lag, n);
    }
    SIMD for (int i = 0; i < n; i++) {
        by_fade[i] *= w->fade[i];
        by_lag[i] += gamma * by_fade[i];
    }
    by_table[3 * R] += dot(by_fade, w->lag, n);
}

static bool backward(const void *argument, int task) {
    const Fourier *job = argument;
    int D = job->outputs, E = job->split.each, R = job->forces * job->count;
    int inputs = job->last - job->first;
    Part part = part_of(&job->split, task);
    float *memory = scratch((long)(WAVE + 4 + 2 * E * D) * BLOCK);
    if (memory == NULL) return false;
    float *more = memory + WAVE * BLOCK;
    Room room = {wave_of(memory),  more,             more + BLOCK,
                 more + 2 * BLOCK, more + 3 * BLOCK, more + 4 * BLOCK, more + (4 + E * D) * BLOCK};
    long width = (long)job->groups * inputs * (3 * R + 1), own = (long)E * D * 2 * R;
    float *by_table = job->by_table + task * width;
    float *by_weights = job->by_weights + part.chunk * job->split.batches * own;
    memset(by_table, 0, sizeof(float) * width);
    memset(by_weights + part.batch * own, 0, sizeof(float) * own);
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK, n = padded(count);
        for (int e = 0; e < E; e++)
            for (int d = 0; d < D; d++) {
                long s = (long)part.batch * E + e;
                load_or_zero(job->gradient + s * job->g_s + from * job->g_n + d * job->g_d,
                             job->g_n, count, room.gradient + (e * D + d) * BLOCK);
            }
        for (int p = 0; p < inputs; p++) {
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 room.w.x);
            bool before = lags(job, &room.w, from, n);
            for (int k = 0; k < E * D; k++)
                SIMD for (int i = 0; i < n; i++)
                    room.sided[k * BLOCK + i] = room.gradient[k * BLOCK + i] * room.w.side[i];
            memset(room.by_lag, 0, sizeof(float) * BLOCK);
            for (int g = 0; g < job->groups; g++)
                group_backward(job, &room, part, g, job->first + p, before,
                               by_table + ((long)g * inputs + p) * (3 * R + 1), by_weights, n);
            if (job->by_x == NULL) continue;
            float *by_x = job->by_x + ((long)part.batch * job->split.points + from) * inputs + p;
            for (int i = 0; i < count; i++) by_x[i * inputs] = room.by_lag[i] * room.w.side[i];
        }
    }
    return true;
}

int fourier_sums(const Fourier *job, int threads) {
    return each_task(forward, job, tasks_of(&job->split), threads);
}

/* The gradients of the parameters of these inputs are written; `by_weights` are of each chunk. */
int fourier_sums_backward(const Fourier *job, int threads) {
    if (!each_task(backward, job, tasks_of(&job->split), threads)) return 0;
    fourier_parameters(job);
    return 1;
}

long size_of_fourier(void) { return sizeof(Fourier); }
