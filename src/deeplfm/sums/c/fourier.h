/* What `fourier.c` and `fourier_parameters.c` are told. */
#ifndef DEEPLFM_FOURIER_H
#define DEEPLFM_FOURIER_H

#include "tasks.h"

typedef struct {
    Split split;
    int first, last; /* of all P inputs, those summed over: x has these alone */
    int inputs, groups, outputs, forces, count;
    int after; /* 0: points; else lags already, of which so many are after the origin, the rest before */
    const float *x; /* [batches, N, last - first], with strides */
    long x_s, x_n, x_p;
    const float *omega, *decay, *amplitude, *weights; /* [G,P,Q,R] [G,P] [G,P,Q] [S,D,Q,2,R] */
    float *table;                                     /* [G,P,4,QR]: omega in turns, H */
    float *out;                                       /* [S,N,D], what is there already is kept */
    const float *gradient;                            /* [S,N,D], with strides */
    long g_s, g_n, g_d;
    float *by_x;       /* [batches, N, last - first], or none */
    float *by_table;   /* [tasks, G, last - first, 3 QR + 1]: of H, omega, and gamma */
    float *by_weights; /* [chunks, S, D, Q, 2, R] */
    float *by_omega, *by_decay, *by_amplitude;
} Fourier;

/* From sums over points, in `by_table`, to the gradients of the parameters of these inputs. */
void fourier_parameters(const Fourier *job);

#endif
