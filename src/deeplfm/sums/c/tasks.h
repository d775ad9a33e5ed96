/* Work that is divided in the same way whatever the number of threads: the same bits every time. */
#ifndef DEEPLFM_TASKS_H
#define DEEPLFM_TASKS_H

#include <stdbool.h>

/* Calls body(job, k) for all k below `count`; false where there was no memory. */
typedef bool (*Body)(const void *job, int task);
bool each_task(Body body, const void *job, int count, int threads);

/* This thread's own memory, until it asks again; NULL where there is none. */
float *scratch(long floats);

/* A sum over `count` rows, `stride` apart, into `total`, which may be the first of them. */
void add_rows(const float *rows, int count, long stride, long width, float *total);

/* Samples that have inputs of their own are a task each; points of few are divided. */
typedef struct {
    int batches, each;  /* sets of inputs, and the samples that share each */
    int points, chunks; /* of a set, and the parts that its points are divided into */
} Split;

int tasks_of(const Split *split);

typedef struct {
    int batch, chunk, from, to;
} Part;

Part part_of(const Split *split, int task);

#endif
