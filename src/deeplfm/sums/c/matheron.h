/* What `matheron.c` and `matheron_backward.c` are told, and triangular solves. */
#ifndef DEEPLFM_MATHERON_H
#define DEEPLFM_MATHERON_H

#include "maths.h"
#include "tasks.h"

typedef struct {
    int forces, points, inputs, samples, basis;
    int z_rows, ell_rows; /* 1 where all forces have the same, else as many as forces */
    double jitter, unit;
    const float *z, *ell, *variance;                          /* [.,M,P] [.,P] [Q] */
    const float *shift, *log_diagonal, *below, *center, *frame; /* [Q,M], [Q,M,M] */
    const float *phase, *xi, *weights, *noise, *eta;          /* [Q,B] [Q,B,P] [S,Q,B] [Q,M,S] */
    double *scaled, *gram, *factor, *values, *unscaled; /* [sets,M,P] [sets,M,M] [Q,M,S], kept */
    int *fine;                                          /* [sets], kept: whether there is a factor */
    float *turns;                                       /* [Q,M,B], kept: phases in turns */
    float *theta, *coefficients;                        /* [Q,B,P] [S,Q,M] */
    const float *by_theta, *by_coefficients;
    float *by_z, *by_ell, *by_variance;         /* start at zero */
    float *by_shift, *by_log_diagonal, *by_below; /* the last starts at zero */
} Matheron;

/* One, or one for each force. */
INLINE int sets_of(const Matheron *job) {
    return job->z_rows > job->ell_rows ? job->z_rows : job->ell_rows;
}

INLINE const float *ell_of(const Matheron *job, int set) {
    return job->ell + (job->ell_rows > 1 ? set * job->inputs : 0);
}

/* x -> L^{-1} x, of `columns` columns. */
INLINE void solve(const double *factor, int points, int columns, double *x) {
    for (int i = 0; i < points; i++) {
        double *own = x + (long)i * columns, inverse = 1 / factor[i * points + i];
        for (int k = 0; k < i; k++) {
            double weight = factor[i * points + k];
            const double *other = x + (long)k * columns;
            SIMD for (int s = 0; s < columns; s++) own[s] -= weight * other[s];
        }
        SIMD for (int s = 0; s < columns; s++) own[s] *= inverse;
    }
}

/* x -> L^{-T} x. */
INLINE void solve_transposed(const double *factor, int points, int columns, double *x) {
    for (int i = points - 1; i >= 0; i--) {
        double *own = x + (long)i * columns, inverse = 1 / factor[i * points + i];
        for (int k = i + 1; k < points; k++) {
            double weight = factor[k * points + i];
            const double *other = x + (long)k * columns;
            SIMD for (int s = 0; s < columns; s++) own[s] -= weight * other[s];
        }
        SIMD for (int s = 0; s < columns; s++) own[s] *= inverse;
    }
}

#endif
