/* Runs kernels, the thread pool and the memory pool on Windows: linked with objects by windows_objects.py.

   Input: a file of launches, each with its buffers before and after. Output: one line, or what differs and exit status 1.
   Why: Wine runs it where there is no Windows. */

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define THREADS 8
#define ROUNDS 6

typedef int32_t (*Kernel)(int64_t *words, int64_t begin, int64_t end);
extern Kernel const functions[]; /* the generated table */
int32_t tc_parallel(Kernel kernel, int64_t *words, int64_t items, int64_t grain);
void tc_set_workers(int32_t count);
void tc_reset_threads(void);
void tc_memory_reset(int32_t first);
void tc_memory_limit(int64_t bytes);
void tc_memory_trim(int64_t keep);
void tc_memory_stats(int64_t *to);
int64_t tc_now(void);
int32_t tc_deep(int64_t *words, int64_t begin, int64_t end);

#pragma pack(push, 1)
extern struct {
    char name[127];
    uint8_t version;
    void *context;
    void *(*allocate)(void *, size_t);
    void *(*zeroed)(void *, size_t, size_t);
    void *(*resize)(void *, void *, size_t);
    void (*release)(void *, void *, size_t);
} handler;
#pragma pack(pop)

int _fltused; /* a mark that Microsoft's linker looks for */

/* The memory pool makes arrays of NumPy's too; nothing here asks it to. */
void *PyExc_TypeError;
char PyArray_Type;
#define UNUSED(name) void name(void) { fprintf(stderr, #name " was called\n"); exit(1); }
UNUSED(PyArray_NewFromDescr)
UNUSED(PyErr_Format)
UNUSED(PyErr_Clear)
UNUSED(PyErr_Occurred)
UNUSED(PyLong_AsLongLong)
UNUSED(PyTuple_Size)
UNUSED(PyTuple_GetItem)
UNUSED(PyTraceMalloc_Track)
UNUSED(Py_IncRef)

static volatile LONG failures;

#define CHECK(held, ...)                \
    do {                                \
        if (!(held)) {                  \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr);        \
            InterlockedIncrement(&failures); \
        }                               \
    } while (0)

/* -- launches ------------------------------------------------------------------------------------------------------ */

typedef struct { int64_t bytes, shift, kind; char *before, *after; } Buffer;
typedef struct { int64_t kind, value, offset; } Word; /* 0: the value; 1: an address in a buffer; 2: a function */
typedef struct {
    int64_t function, items, grain, status, buffer_count, word_count;
    Buffer *buffers;
    Word *words;
} Launch;

static Launch *launches;
static int64_t launch_count;

static void *read_bytes(FILE *file, int64_t count) {
    void *found = malloc(count + 1);
    if (found == NULL || fread(found, 1, count, file) != (size_t)count) {
        fprintf(stderr, "the file of launches is cut off\n");
        exit(1);
    }
    return found;
}

static void read_launches(char const *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    launch_count = *(int64_t *)read_bytes(file, 8);
    launches = calloc(launch_count, sizeof(Launch));
    for (int64_t k = 0; k < launch_count; k++) {
        Launch *launch = &launches[k];
        memcpy(launch, read_bytes(file, 48), 48);
        launch->buffers = calloc(launch->buffer_count + 1, sizeof(Buffer));
        for (int64_t b = 0; b < launch->buffer_count; b++) {
            memcpy(&launch->buffers[b], read_bytes(file, 24), 24);
            launch->buffers[b].before = read_bytes(file, launch->buffers[b].bytes);
            launch->buffers[b].after = read_bytes(file, launch->buffers[b].bytes);
        }
        launch->words = read_bytes(file, launch->word_count * sizeof(Word));
    }
    fclose(file);
}

/* Whether floats are the same, but for the last bits where C's library computes them: systems differ there. */
static int is_close(double x, double y, double most) {
    return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= most * fabs(y);
}

static int is_same(Buffer const *buffer, char const *found) {
    if (buffer->kind == 0) return memcmp(found, buffer->after, buffer->bytes) == 0;
    int64_t width = buffer->kind;
    for (int64_t at = 0; at + width <= buffer->bytes; at += width) {
        double x, y, most = width == 4 ? 1e-6 : 1e-14;
        if (width == 4) {
            x = *(float const *)(found + at);
            y = *(float const *)(buffer->after + at);
        } else {
            x = *(double const *)(found + at);
            y = *(double const *)(buffer->after + at);
        }
        if (!is_close(x, y, most)) return 0;
    }
    return 1;
}

static void run(int64_t number) {
    Launch const *launch = &launches[number];
    char *memory[16], *data[16];
    int64_t words[64];
    for (int64_t b = 0; b < launch->buffer_count; b++) {
        Buffer const *buffer = &launch->buffers[b];
        memory[b] = handler.allocate(NULL, buffer->bytes + 64);
        CHECK(memory[b] != NULL && (intptr_t)memory[b] % 64 == 0, "no memory");
        data[b] = memory[b] + buffer->shift;
        memcpy(data[b], buffer->before, buffer->bytes);
    }
    for (int64_t w = 0; w < launch->word_count; w++) {
        Word const *word = &launch->words[w];
        words[w] = word->kind == 0 ? word->value
                 : word->kind == 1 ? (int64_t)(data[word->value] + word->offset)
                                   : (int64_t)functions[word->value];
    }
    Kernel kernel = functions[launch->function];
    int32_t status = launch->items <= launch->grain ? kernel(words, 0, launch->items)
                                                    : tc_parallel(kernel, words, launch->items, launch->grain);
    CHECK(status == launch->status, "launch %" PRId64 ": status %d, not %" PRId64, number, status, launch->status);
    for (int64_t b = 0; b < launch->buffer_count; b++) {
        CHECK(is_same(&launch->buffers[b], data[b]), "launch %" PRId64 ": buffer %" PRId64 " differs", number, b);
        handler.release(NULL, memory[b], 0);
    }
}

static DWORD WINAPI run_all(void *first) {
    for (int64_t k = 0; k < ROUNDS * launch_count; k++) run((k + (intptr_t)first) % launch_count);
    return 0;
}

/* -- the thread pool ----------------------------------------------------------------------------------------------- */

static volatile LONG arrived;
static volatile LONG counts[1000];

/* Each of four chunks waits for the others: only different threads can do all of them. */
static int32_t meet(int64_t *words, int64_t begin, int64_t end) {
    LONG seen = InterlockedIncrement(&arrived);
    for (int tries = 0; seen < 4 && tries < 20000; tries++) {
        Sleep(1);
        seen = arrived;
    }
    return seen < 4;
}

static int32_t count(int64_t *words, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) InterlockedIncrement(&counts[k]);
    return 1 << (begin / 10 % 5);
}

static void check_threads(void) {
    CHECK(tc_parallel(meet, NULL, 4, 1) == 0, "the workers do not take part");
    for (int k = 1; k <= 40; k++) {
        if (k % 8 == 0) Sleep(30); /* the workers fall asleep, and are woken */
        CHECK(tc_parallel(count, NULL, 1000, 10) == 31, "statuses are lost");
        for (int item = 0; item < 1000; item++) CHECK(counts[item] == k, "item %d was done %ld times", item, counts[item]);
    }
    int64_t sum = 0, words[1] = {(int64_t)&sum};
    CHECK(tc_parallel(tc_deep, words, 8, 1) == 0 && sum == 8, "large frames: %" PRId64, sum);
    arrived = 0;
    CHECK(tc_parallel(meet, NULL, 4, 1) == 0, "the workers do not take part any more");
}

/* -- the memory pool ----------------------------------------------------------------------------------------------- */

static DWORD WINAPI use_memory(void *seed) {
    uint64_t state = (uintptr_t)seed + 1;
    char *held[4] = {0};
    size_t sizes[4] = {0};
    for (int k = 0; k < 400; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int slot = state >> 62;
        size_t size = 1 + (state >> 20) % (3 << 20);
        if (held[slot] != NULL) {
            char mark = (char)(slot + (intptr_t)seed * 4);
            CHECK(held[slot][0] == mark && held[slot][sizes[slot] - 1] == mark, "memory was changed");
        }
        if (k % 3 == 0) {
            held[slot] = handler.resize(NULL, held[slot], size);
        } else {
            handler.release(NULL, held[slot], sizes[slot]);
            held[slot] = k % 3 == 1 ? handler.allocate(NULL, size) : handler.zeroed(NULL, 1, size);
            CHECK(k % 3 == 1 || held[slot][size / 2] == 0, "memory is not zero");
        }
        sizes[slot] = size;
        held[slot][0] = held[slot][size - 1] = (char)(slot + (intptr_t)seed * 4);
    }
    for (int slot = 0; slot < 4; slot++) handler.release(NULL, held[slot], sizes[slot]);
    return 0;
}

static void in_threads(LPTHREAD_START_ROUTINE work) {
    HANDLE threads[THREADS];
    for (intptr_t k = 0; k < THREADS; k++) threads[k] = CreateThread(NULL, 0, work, (void *)k, 0, NULL);
    WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

int main(int argc, char **argv) {
    int64_t stats[5], began = tc_now();
    Sleep(20);
    CHECK(tc_now() - began >= 10000000, "the clock does not go on");
    read_launches(argv[1]);
    tc_reset_threads();
    tc_set_workers(THREADS - 1);
    tc_memory_reset(1);
    tc_memory_limit(64 << 20);
    check_threads();
    run_all(0);
    in_threads(run_all);
    in_threads(use_memory);
    tc_memory_stats(stats);
    CHECK(stats[0] == 0 && stats[1] > 0 && stats[1] <= 64 << 20, "the pool: %" PRId64 " in use, %" PRId64, stats[0], stats[1]);
    CHECK(stats[2] > 0 && stats[3] > 0, "the pool: %" PRId64 " hits, %" PRId64 " misses", stats[2], stats[3]);
    tc_memory_trim(0);
    tc_memory_stats(stats);
    CHECK(stats[1] == 0, "the pool keeps %" PRId64 " bytes", stats[1]);
    if (failures) return 1;
    printf("%" PRId64 " launches, %d threads: all as expected\n", launch_count, THREADS);
    return 0;
}
