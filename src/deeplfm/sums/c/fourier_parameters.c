/* What a first-order ODE makes of each frequency, and back: small, on one thread, in double
   precision. H = |a|/sqrt(R)/(gamma + j omega). */
#include <math.h>

#include "fourier.h"

/* The table of all inputs: frequencies in turns as sums of two numbers, and H. */
int fourier_table(const Fourier *job, int threads) {
    (void)threads;
    int R = job->count, Q = job->forces;
    double root = 1 / sqrt(R);
    for (int k = 0; k < job->groups * job->inputs; k++)
        for (int r = 0; r < Q * R; r++) {
            float *own = job->table + (long)k * 4 * Q * R + r;
            double omega = job->omega[(long)k * Q * R + r], gamma = job->decay[k];
            double turn = omega * 0.15915494309189535;
            double size = fabs(job->amplitude[k * Q + r / R]) * root / (gamma * gamma + omega * omega);
            own[0] = (float)turn;
            own[Q * R] = (float)(turn - own[0]);
            own[2 * Q * R] = (float)(size * gamma);
            own[3 * Q * R] = (float)(-size * omega);
        }
    return 1;
}

void fourier_parameters(const Fourier *job) {
    int Q = job->forces, R = job->count, inputs = job->last - job->first;
    long width = (long)job->groups * inputs * (3 * Q * R + 1);
    add_rows(job->by_table, tasks_of(&job->split), width, width, job->by_table);
    double root = 1 / sqrt(R);
    for (int g = 0; g < job->groups; g++)
        for (int p = job->first; p < job->last; p++) {
            int k = g * job->inputs + p;
            const float *by = job->by_table + ((long)g * inputs + p - job->first) * (3 * Q * R + 1);
            double by_gamma = by[3 * Q * R], gamma = job->decay[k];
            for (int q = 0; q < Q; q++) {
                float amplitude = job->amplitude[k * Q + q];
                double size = fabs(amplitude) * root, by_size = 0;
                for (int r = q * R; r < (q + 1) * R; r++) {
                    double omega = job->omega[(long)k * Q * R + r];
                    double power = 1 / (gamma * gamma + omega * omega);
                    double real = gamma * power, imag = -omega * power; /* 1/(gamma + j omega) */
                    by_size += by[r] * real + by[Q * R + r] * imag;
                    /* its derivatives are -1/()^2 and -j/()^2 */
                    double slope = size * (imag * imag - real * real), turn = 2 * size * real * imag;
                    by_gamma += by[r] * slope - by[Q * R + r] * turn;
                    job->by_omega[(long)k * Q * R + r] =
                        (float)(by[2 * Q * R + r] + by[r] * turn + by[Q * R + r] * slope);
                }
                double sign = (amplitude > 0) - (amplitude < 0);
                job->by_amplitude[k * Q + q] = (float)(sign * by_size * root);
            }
            job->by_decay[k] = (float)by_gamma;
        }
}
