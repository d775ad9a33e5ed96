/* Interpolation in tables over |x|, one for each input, sample and side of the origin.

       out[s,n,d] += sum_p sum_k w_k(u) table[p, s, side, cell + k, d],   |x_p| = (cell + u) spacing_p

   Lagrange's weights of LOOKUP_NODES nodes, three of them before the cell; the slope is that of the sum. */
#include <stddef.h>

#include "maths.h"
#include "tasks.h"

typedef struct {
    Split split;
    int inputs, outputs, size; /* of the nodes of one side */
    const float *x;            /* [S, N, P], with strides */
    long x_s, x_n, x_p;
    const float *spacing, *table; /* [P], [P, S, 2 or 1, K, D] */
    int sides;
    float *out;            /* [S, N, D] */
    const float *gradient; /* [S, N, D], with strides */
    long g_s, g_n, g_d;
    float *by_x, *by_table; /* [S, N, P], as the table, which starts at zero */
} Job;

/* Polynomials of the weights in u - 1/2, from low powers to high, and of their slopes. */
static float weights[LOOKUP_NODES][LOOKUP_NODES], slopes[LOOKUP_NODES][LOOKUP_NODES];

void set_weights(const float *of_weights, const float *of_slopes) {
    memcpy(weights, of_weights, sizeof weights);
    memcpy(slopes, of_slopes, sizeof slopes);
}

/* A polynomial of each node at all points, [LOOKUP_NODES, BLOCK]. */
static void polynomials(float of_nodes[LOOKUP_NODES][LOOKUP_NODES], const float *within, float scale, int n,
                        float *values) {
    for (int k = 0; k < LOOKUP_NODES; k++) {
        float c[LOOKUP_NODES], *own = values + k * BLOCK;
        for (int m = 0; m < LOOKUP_NODES; m++) c[m] = scale * of_nodes[k][m];
        SIMD for (int i = 0; i < n; i++) {
            float u = within[i], value = c[LOOKUP_NODES - 1];
            for (int m = LOOKUP_NODES - 2; m >= 0; m--) value = fmaf(value, u, c[m]);
            own[i] = value;
        }
    }
}

/* The first node of each point, the weights of all, and if asked for their slopes. */
static void places(const Job *job, const float *x, float spacing, int n, int *first, float *share,
                   float *slope) {
    float inverse = 1 / spacing, most = (float)(job->size - LOOKUP_NODES), within[BLOCK];
    int second = job->sides == 2 ? job->size : 0;
    SIMD for (int i = 0; i < n; i++) {
        float position = fabsf(x[i]) * inverse, cell = floorf(position);
        float there = cell < most ? cell : most; /* NaN is no index */
        int side = x[i] < 0 ? second : 0;
        within[i] = position - there - 0.5f;
        first[i] = (int)there + side;
    }
    polynomials(weights, within, 1, n, share);
    if (slope != NULL) polynomials(slopes, within, inverse, n, slope);
}

static bool forward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, D = job->outputs, first[BLOCK];
    float x[BLOCK], share[LOOKUP_NODES * BLOCK];
    Part part = part_of(&job->split, task);
    long own = (long)job->sides * job->size * D;
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK;
        float *out = job->out + ((long)part.batch * job->split.points + from) * D;
        for (int p = 0; p < P; p++) {
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 x);
            places(job, x, job->spacing[p], padded(count), first, share, NULL);
            const float *table = job->table + ((long)p * job->split.batches + part.batch) * own;
            for (int i = 0; i < count; i++)
                for (int k = 0; k < LOOKUP_NODES; k++) {
                    const float *row = table + (long)(first[i] + k) * D;
                    float weight = share[k * BLOCK + i];
                    for (int d = 0; d < D; d++) out[i * D + d] += weight * row[d];
                }
        }
    }
    return true;
}

static bool backward(const void *argument, int task) {
    const Job *job = argument;
    int P = job->inputs, D = job->outputs, first[BLOCK];
    float x[BLOCK], share[LOOKUP_NODES * BLOCK], slope[LOOKUP_NODES * BLOCK];
    Part part = part_of(&job->split, task);
    long own = (long)job->sides * job->size * D;
    for (int from = part.from; from < part.to; from += BLOCK) {
        int count = part.to - from < BLOCK ? part.to - from : BLOCK;
        const float *gradient = job->gradient + part.batch * job->g_s + from * job->g_n;
        float *by_x = job->by_x + ((long)part.batch * job->split.points + from) * P;
        for (int p = 0; p < P; p++) {
            load(job->x + part.batch * job->x_s + from * job->x_n + p * job->x_p, job->x_n, count,
                 x);
            places(job, x, job->spacing[p], padded(count), first, share, slope);
            long at = ((long)p * job->split.batches + part.batch) * own;
            for (int i = 0; i < count; i++) {
                float along = 0;
                for (int k = 0; k < LOOKUP_NODES; k++) {
                    const float *row = job->table + at + (long)(first[i] + k) * D;
                    float *by_row = job->by_table + at + (long)(first[i] + k) * D, sum = 0;
                    float weight = share[k * BLOCK + i];
                    for (int d = 0; d < D; d++) {
                        float own_gradient = gradient[i * job->g_n + d * job->g_d];
                        by_row[d] += weight * own_gradient;
                        sum += row[d] * own_gradient;
                    }
                    along += slope[k * BLOCK + i] * sum;
                }
                by_x[i * P + p] = x[i] < 0 ? -along : along;
            }
        }
    }
    return true;
}

/* Each sample has tables of its own, and is one task. */
int interpolated(const Job *job, int threads) {
    return each_task(forward, job, tasks_of(&job->split), threads);
}

int interpolated_backward(const Job *job, int threads) {
    return each_task(backward, job, tasks_of(&job->split), threads);
}

long size_of_lookup(void) { return sizeof(Job); }
