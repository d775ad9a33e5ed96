/* Filters and smoothers of a bank of oscillators beside one dense block; formulas as in
   `sums/markov_evidence.py`. In double precision throughout.

   A state is x_1..x_K, y_1..y_K, w_1..w_M; each part is padded with zeros to a multiple of WIDE, and
   so are rows of matrices. `ld` is the padded size of a state. */
#ifndef DEEPLFM_MARKOV_H
#define DEEPLFM_MARKOV_H

#include <stdbool.h>

#include "constants.h"
#include "tasks.h"

#define MOST_OUTPUTS 64
/* Numbers of a vector: as many as a register holds. Wider ones would go through memory. */
#if defined(__AVX512F__)
#define WIDE 8
#elif defined(__AVX__)
#define WIDE 4
#else
#define WIDE 2
#endif

typedef double vec __attribute__((vector_size(8 * WIDE), aligned(8), may_alias));

typedef struct {
    int series, rows, outputs, columns, steps; /* B N D C T */
    int oscillators, dense, readouts, segment; /* K M E; rows between two checkpoints */
    int groups;                                /* of series: each sums up gradients of its own */
    int noise_series, noise_rows;              /* strides of the noise: 0, or as if it were whole */
    const double *decay, *turn;                /* [T,K] */
    const double *transition, *diffusion;      /* [T,M,M] */
    const double *start, *loadings;            /* [M,M] [D,s] */
    const double *noise, *targets;             /* [D] and strides, [B,N,D,C] */
    const int *step;                           /* [B,N] */
    const bool *observed;                      /* [B,N,D] */
    double *log_det, *gram;                    /* [B] [B,C,C] */
    double *kept;                              /* [B,checkpoints,ld * (ld + C)], or none */
    const double *by_log_det, *by_gram;        /* [B] [B,C,C] */
    double *by_decay, *by_turn, *by_transition, *by_diffusion; /* [groups, ...], start at zero */
    double *by_start, *by_loadings;                            /* [groups, ...], start at zero */
    double *by_noise, *by_targets;                             /* [B,N,D] [B,N,D,C] */
    const double *readout;                                     /* [E,s] */
    double *mean, *variance, *weights;                         /* [B,N,E,C] [B,N,E] [B,N,D,C] */
} Markov;

/* Sizes, and tables of steps and of loadings that all series share. */
typedef struct {
    const Markov *job;
    int K, M, D, C, Kp, ld;
    double *cosine, *sine, *spread; /* [T,Kp] */
    double *loadings, *readout;     /* [D,ld] [E,ld] */
} Shared;

/* What the filter knows at one row: its prediction, and what each observation changed. */
typedef struct {
    double *P, *m;         /* [ld,ld] [C,ld], predicted from the rows before */
    double *gain, *scaled; /* [D,ld]: P h and P h / sqrt(v), of the entries in their order */
    double v[MOST_OUTPUTS];
    double *error;    /* [D,C] */
    double *moved;    /* [M,ld]: columns of Phi P of the dense block, of the step to this row */
    double *filtered; /* [C,M]: the dense part of the mean before that step */
    int count, entry[MOST_OUTPUTS];
} Row;

INLINE int padded(int size) { return (size + WIDE - 1) / WIDE * WIDE; }
INLINE int place(const Shared *of, int i) {
    return i < of->K ? i : i < 2 * of->K ? i - of->K + of->Kp : i - 2 * of->K + 2 * of->Kp;
}
INLINE vec load(const double *at) { return *(const vec *)at; }
INLINE void store(double *at, vec value) { *(vec *)at = value; }
INLINE double total(vec v) {
    double sum = 0;
    for (int i = 0; i < WIDE; i++) sum += v[i];
    return sum;
}
INLINE double dot(const double *a, const double *b, int size) {
    vec sum = {0};
    for (int i = 0; i < size; i += WIDE) sum += load(a + i) * load(b + i);
    return total(sum);
}
INLINE void add(double *to, double scale, const double *from, int size) {
    for (int i = 0; i < size; i += WIDE) store(to + i, load(to + i) + scale * load(from + i));
}

INLINE double *scratch_of_doubles(long count) { return (double *)scratch(2 * count); }

bool share(Shared *of, const Markov *job);
void give_up(Shared *of);
long row_size(const Shared *of);
double *lay_out(const Shared *of, Row *row, double *memory);

/* out_j = A v_j, for a symmetric A and `count` vectors. */
void products(const Shared *of, const double *A, const double *v, int count, double *out);
/* A copy of the lower half to the upper one. */
void mirror(const Shared *of, double *A);
void begin(const Shared *of, Row *row);
/* The prediction of the next row, from one whose entries have been used. */
void predict(const Shared *of, int step, const Row *row, const double *mean, Row *next);
/* Uses the entries of a row: its gains and errors; `mean` [C,ld] is then the filtered one. */
void observe(const Shared *of, int b, int t, Row *row, double *mean);
/* Both; there may be no next row. */
void filter_row(const Shared *of, int b, int t, Row *row, Row *next, double *mean);

long checkpoint_size(const Shared *of);
void keep(const Shared *of, const Row *row, double *memory, bool back);

/* What later rows say about the state: r [C,ld] and R [ld,ld]; and what the entries of a row add. */
typedef struct {
    double *r, *R, *next;       /* [C,ld] [ld,ld] [ld,ld] */
    double *Rg, *half, *q;      /* [D,ld] each */
    double *u, w[MOST_OUTPUTS]; /* [D,C] */
    double *same, *other;       /* [K]: of R P, the trace of each oscillator's tile, and its turn */
    double *trace, *inner;      /* [K] of R; [K,2,WIDE]: of R P, by parts of a vector */
} Later;

long later_size(const Shared *of);
void lay_out_later(const Shared *of, Later *later, double *memory);
/* Takes in the entries of a row: r is then of its prediction, and so will R be. */
void use_entries(const Shared *of, Row *row, Later *later);
/* R of the prediction of a row, and sums of it; oscillators are then before the step to the row,
   if it is not negative. The dense block and r are so after `step_back`. */
void finish_row(const Shared *of, int step, const Row *row, Later *later);
void step_back(const Shared *of, int step, Later *later);

#endif
