/* The smoother: means and variances of linear functions of the state, and K^{-1} y; see markov.h.

       mean z'(m + P r),  variance z'P z - (P z)'R (P z),   weights u of the entries

   m and P are filtered, and r and R of later rows alone. With those before the entries of a row a
   variance as small as the noise would be the difference of two large numbers. */
#include <stdlib.h>
#include <string.h>

#include "markov.h"

/* Before the entries of the row are taken in; `x` [C,ld] is its filtered mean. */
static void read_out(const Shared *of, int b, int t, const Row *row, const Later *later,
                     const double *x, double *Pz, double *RPz) {
    const Markov *job = of->job;
    int C = of->C, E = job->readouts;
    long ld = of->ld, at = ((long)b * job->rows + t) * E;
    products(of, row->P, of->readout, E, Pz);
    for (int e = 0; e < E; e++) /* of one entry after the other, as the filter does */
        for (int j = 0; j < row->count; j++) {
            const double *scaled = row->scaled + j * ld;
            add(Pz + e * ld, -dot(scaled, of->readout + e * ld, ld), scaled, ld);
        }
    products(of, later->R, Pz, E, RPz);
    for (int e = 0; e < E; e++) {
        const double *z = of->readout + e * ld, *p = Pz + e * ld;
        double after = dot(z, p, ld) - dot(p, RPz + e * ld, ld);
        job->variance[at + e] = after > 0 ? after : 0;
        for (int c = 0; c < C; c++)
            job->mean[(at + e) * C + c] = dot(z, x + c * ld, ld) + dot(p, later->r + c * ld, ld);
    }
}

static bool smooth_series(const void *argument, int b) {
    const Shared *of = argument;
    const Markov *job = of->job;
    int N = job->rows, C = of->C, D = of->D, E = job->readouts;
    int segments = (N + job->segment - 1) / job->segment;
    int rows_at_once = job->segment < N ? job->segment : N;
    long ld = of->ld, extra = ((long)rows_at_once * C + 2 * E) * ld;
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
    double *Pz = memory, *RPz = Pz + E * ld, *x = RPz + E * ld; /* x [rows,C,ld]: filtered means */
    for (int segment = segments - 1; segment >= 0; segment--) {
        int from = segment * job->segment, to = from + job->segment < N ? from + job->segment : N;
        keep(of, rows, job->kept + ((long)b * segments + segment) * checkpoint_size(of), true);
        for (int t = from; t < to; t++)
            filter_row(of, b, t, rows + t - from, t + 1 < to ? rows + t + 1 - from : NULL,
                       x + (t - from) * C * ld);
        for (int t = to - 1; t >= from; t--) {
            Row *row = rows + t - from;
            double *weights = job->weights + ((long)b * N + t) * D * C;
            if (E > 0) read_out(of, b, t, row, &later, x + (t - from) * C * ld, Pz, RPz);
            int step = t > 0 ? job->step[(long)b * N + t] : -1;
            use_entries(of, row, &later);
            finish_row(of, step, row, &later);
            memset(weights, 0, (long)D * C * sizeof(double));
            for (int j = 0; j < row->count; j++)
                memcpy(weights + row->entry[j] * C, later.u + j * C, C * sizeof(double));
            if (t > 0) step_back(of, step, &later);
            if (t % 16 == 0) mirror(of, later.R);
        }
    }
    free(rows);
    return true;
}

bool markov_smooth(const Markov *job, int threads) {
    Shared of;
    if (!share(&of, job)) return false;
    bool done = each_task(smooth_series, &of, job->series, threads);
    give_up(&of);
    return done;
}
