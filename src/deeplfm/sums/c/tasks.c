#include "tasks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

float lowest_exponent = -87;

/* `GOMP_parallel` of the OpenMP library that torch uses: a pool of our own would fight with it. */
typedef void (*Parallel)(void (*)(void *), void *, unsigned, unsigned);
static Parallel parallel = NULL;

void use_threads_of(void *gomp_parallel) { parallel = (Parallel)gomp_parallel; }

typedef struct {
    Body body;
    const void *job;
    int count;
    atomic_int next;
    atomic_bool failed;
} Queue;

static void work(void *argument) {
    Queue *queue = argument;
#ifdef __SSE__
    /* Products of bumps far away are too small for normal numbers, and slow to keep. */
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
#endif
    for (int k; (k = atomic_fetch_add(&queue->next, 1)) < queue->count;)
        if (!queue->body(queue->job, k)) atomic_store(&queue->failed, true);
#ifdef __SSE__
    _mm_setcsr(before);
#endif
}

bool each_task(Body body, const void *job, int count, int threads) {
    Queue queue = {.body = body, .job = job, .count = count};
    if (parallel != NULL && threads > 1 && count > 1)
        parallel(work, &queue, threads < count ? threads : count, 0);
    else
        work(&queue);
    return !atomic_load(&queue.failed);
}

/* What a thread has is given back when it ends. */
typedef struct {
    long floats;
    float *memory;
} Held;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void release(void *argument) {
    Held *held = argument;
    free(held->memory);
    free(held);
}

static void make_key(void) { pthread_key_create(&key, release); }

float *scratch(long floats) {
    pthread_once(&once, make_key);
    Held *held = pthread_getspecific(key);
    if (held == NULL) {
        held = calloc(1, sizeof *held);
        if (held == NULL || pthread_setspecific(key, held) != 0) {
            free(held);
            return NULL;
        }
    }
    if (floats > held->floats) {
        free(held->memory);
        held->memory = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
        held->floats = held->memory == NULL ? 0 : floats;
    }
    return held->memory;
}

void add_rows(const float *rows, int count, long stride, long width, float *total) {
    for (long k = 0; k < width; k++) {
        double sum = 0;
        for (int row = 0; row < count; row++) sum += rows[row * stride + k];
        total[k] = (float)sum;
    }
}

int tasks_of(const Split *split) { return split->batches * split->chunks; }

Part part_of(const Split *split, int task) {
    int chunk = task % split->chunks;
    long from = (long)split->points * chunk / split->chunks;
    long to = (long)split->points * (chunk + 1) / split->chunks;
    return (Part){task / split->chunks, chunk, (int)from, (int)to};
}
