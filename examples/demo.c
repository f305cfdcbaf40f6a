/* SPDX-License-Identifier: MIT */
/* demo [SPEED] - six threads and six tasks change hands on one semaphore, live.
 *
 * The tasks share one thread of a runtime; all stand in one line.  The program keeps
 * books of its own beside the semaphore and fails if the two disagree: if more was lent
 * than there is, if a permit was lost, or if anyone got in before someone who was in line
 * before it.  On a terminal the picture is drawn as it grows (it takes 80x24); elsewhere
 * the acts are told line by line and the picture comes last.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weir/weir.h>

enum { WORKERS = 12, THREADS = 6, HASTY = 10, HEAVY = 11, PERMITS = 4, COLUMNS = 56 };

enum state { RESTING, WAITING, HOLDING };

/* (w) is for the worker alone, (b) for whoever holds the book; the rest never changes. */
struct worker {
    uint64_t asks;           /* permits, each time                         */
    int patience_ms;         /* how long it waits for them; 0 is for ever  */
    int comes_at_ms;         /* when it joins the others                   */
    pthread_t thread;        /* of the first THREADS; the others are tasks */
    unsigned random;         /* (w) */
    enum state state;        /* (b) */
    uint64_t ticket;         /* (b) its place in the order of arrival */
    int64_t came_ns;         /* (b) when it drew the ticket           */
    unsigned grants;         /* (b) */
    char chart[COLUMNS + 1]; /* (b) */
};

static struct worker workers[WORKERS];
static struct weir_sem slots = WEIR_SEM_INIT(PERMITS);
static struct weir_runtime *runtime;

static struct {
    struct weir_mutex lock;
    uint64_t tickets;    /* drawn                                           */
    uint64_t returned;   /* tickets whose wait has returned                 */
    uint64_t held;       /* permits                                         */
    uint64_t roof;       /* the largest capacity so far                     */
    uint64_t drainers;   /* who stand in line without a ticket              */
    uint64_t inversions; /* someone was still in line before one that got in */
    uint64_t overdrafts; /* more was held than that                         */
    unsigned to_threads, to_tasks, gave_up;
    int64_t longest_wait_ns;
    char held_chart[COLUMNS + 1], capacity_chart[COLUMNS + 1];
} book = {.lock = WEIR_MUTEX_INIT, .roof = PERMITS};

static bool on_terminal;
static int64_t speed = 1, began_ns;
static const char *act_text = "";

/* ---- time ---------------------------------------------------------------------- */

static int64_t scaled_ns(int64_t ms)
{
    return ms * WEIR_MS / speed;
}

/* Since the beginning, as if it were shown at normal speed. */
static int64_t elapsed_ms(void)
{
    return (weir_now_ns() - began_ns) * speed / WEIR_MS;
}

/* In a task, others run meanwhile. */
static void nap(int64_t ns)
{
    weir_task_sleep(weir_within(ns));
}

static int column_now(void)
{
    int64_t column = elapsed_ms() / 100;

    return column < COLUMNS ? (int)column : COLUMNS - 1;
}

/* ---- the book ------------------------------------------------------------------ */

static void book_open(void)
{
    if (weir_mutex_lock(&book.lock, WEIR_FOREVER) < 0)
        abort(); /* whoever waits for ever is refused nothing */
}

static void book_shut(void)
{
    weir_mutex_unlock(&book.lock);
}

/* Draw a ticket, but not before everyone with an earlier one is in the queue or out of
 * it again: so tickets are in the order of the queue.  (Whoever left the queue may not
 * be back yet, so the sum can be short for a moment, but never too large.) */
static void book_arrival(struct worker *w)
{
    book_open();
    while (weir_sem_waiting(&slots) + book.returned < book.tickets) {
        book_shut();
        nap(50 * WEIR_US);
        book_open();
    }
    w->ticket = book.tickets++;
    w->state = WAITING;
    w->came_ns = weir_now_ns();
    book_shut();
}

/* In order, whoever is still in line came later.  A longer line means that someone who
 * came earlier is still in it. */
static void book_grant(struct worker *w)
{
    uint64_t in_line = weir_sem_waiting(&slots), later = book.drainers;
    int64_t waited_ns = weir_now_ns() - w->came_ns;

    for (int i = 0; i < WORKERS; i++)
        later += workers[i].state == WAITING && workers[i].ticket > w->ticket;
    if (in_line > later)
        book.inversions += in_line - later;
    if (waited_ns > book.longest_wait_ns)
        book.longest_wait_ns = waited_ns;
    book.held += w->asks;
    if (book.held > book.roof)
        book.overdrafts++;
    *(w < workers + THREADS ? &book.to_threads : &book.to_tasks) += 1;
    w->grants++;
    w->state = HOLDING;
}

static void book_result(struct worker *w, int result)
{
    book_open();
    book.returned++;
    w->state = RESTING;
    if (result == 0) {
        book_grant(w);
    } else if (result == WEIR_ETIMEDOUT) {
        book.gave_up++;
        w->chart[column_now()] = 'x';
    }
    book_shut();
}

/* ---- the workers --------------------------------------------------------------- */

static void spend(struct worker *w, int least_ms, int most_ms)
{
    w->random = w->random * 1103515245u + 12345u;
    nap(scaled_ns(least_ms + (int)(w->random >> 16) % (most_ms - least_ms + 1)));
}

static int take_turn(struct worker *w)
{
    struct weir_deadline deadline = WEIR_FOREVER;
    int r;

    book_arrival(w);
    if (w->patience_ms)
        deadline = weir_within(scaled_ns(w->patience_ms));
    r = weir_sem_acquire(&slots, w->asks, deadline);
    book_result(w, r);
    if (r == 0) {
        spend(w, 100, 350);
        book_open();
        book.held -= w->asks;
        w->state = RESTING;
        book_shut();
        weir_sem_release(&slots, w->asks);
    }
    return r;
}

/* The same for both kinds. */
static int worker_run(void *arg)
{
    struct worker *w = arg;

    nap(scaled_ns(w->comes_at_ms));
    while (take_turn(w) != WEIR_ECLOSED)
        spend(w, w->patience_ms ? 300 : 40, w->patience_ms ? 500 : 200);
    return 0;
}

static void *thread_run(void *arg)
{
    worker_run(arg);
    return NULL;
}

/* ---- the acts ------------------------------------------------------------------ */

static struct weir_op last_wait = WEIR_OP_INIT;
static struct weir_event drained = WEIR_EVENT_INIT;

static void on_idle(struct weir_op *op, int result)
{
    (void)op;
    if (result == 0)
        weir_event_set(&drained);
}

/* Let nobody in any more, and be called when the last one inside has left. */
static void shut(void)
{
    weir_sem_close(&slots);
    book.drainers++;
    if (weir_sem_wait_idle_async(&slots, &last_wait, on_idle) == 1)
        weir_event_set(&drained);
}

static const struct act {
    int at_ms;
    uint64_t permits;
    const char *text;
} acts[] = {
    {0, 4, "six threads and four tasks share 4 permits, in order of arrival"},
    {1000, 4, "l asks for all 4: nobody behind it gets in before it"},
    {2200, 4, "k waits 0.15 s at most, then gives up (x) and holds nothing"},
    {3100, 8, "resized to 8: those who wait are let in at once"},
    {3900, 4, "resized to 4: nobody loses a permit, but fewer get in"},
    {5000, 4, "closed: those who wait are turned away, those inside finish"},
};

/* Play what is due; close only when the heavy one has had its turn. */
static void play(void)
{
    static const struct act *next = acts, *const end = acts + sizeof acts / sizeof *acts;

    while (next < end && elapsed_ms() >= next->at_ms) {
        if (next + 1 == end && workers[HEAVY].grants == 0)
            return;
        act_text = next->text;
        if (!on_terminal)
            printf("%4.1f s  %s\n", (double)elapsed_ms() / 1000, act_text);
        if (next->permits > book.roof)
            book.roof = next->permits;
        weir_sem_resize(&slots, next->permits);
        if (++next == end)
            shut();
    }
}

/* ---- the picture --------------------------------------------------------------- */

/* Bring the charts up to the present column. */
static void chart(void)
{
    static int done;

    for (int column = column_now(); done <= column; done++) {
        for (int i = 0; i < WORKERS; i++) {
            struct worker *w = &workers[i];

            if (w->chart[done] == 0)
                w->chart[done] = w->state == WAITING ? '.' : ' ';
            if (w->state == HOLDING)
                w->chart[done] = (char)('0' + w->asks);
        }
        book.held_chart[done] = (char)('0' + book.held);
        book.capacity_chart[done] = (char)('0' + weir_sem_capacity(&slots));
    }
}

static void draw_worker(const struct worker *w)
{
    static const int hues[WORKERS] = {75, 114, 180, 176, 80, 222, 110, 150, 174, 146, 152, 209};
    char last = 0;

    printf(" %c %-6s asks %d ", 'a' + (int)(w - workers), w < workers + THREADS ? "thread" : "task",
           (int)w->asks);
    for (const char *c = w->chart; *c; last = *c++) {
        if (on_terminal && *c != last) {
            if (*c >= '0' && *c <= '9')
                printf("\033[0;30;48;5;%dm", hues[w - workers]);
            else
                printf(*c == 'x' ? "\033[0;1;31m" : "\033[0;2m");
        }
        putchar(*c);
    }
    printf("%s%*u\n", on_terminal ? "\033[0m" : "", COLUMNS + 6 - (int)strlen(w->chart), w->grants);
}

static void draw_chart(void)
{
    puts("                 0s        1s        2s        3s        4s        5s    grants");
    for (int i = 0; i < WORKERS; i++)
        draw_worker(&workers[i]);
    printf(" all hold        %s\n of              %s\n", book.held_chart, book.capacity_chart);
}

/* Who waits, in the order of their tickets, which is the order of the queue. */
static void draw_queue(void)
{
    printf(" in line        ");
    for (uint64_t ticket = 0; ticket < book.tickets; ticket++)
        for (int i = 0; i < WORKERS; i++)
            if (workers[i].state == WAITING && workers[i].ticket == ticket)
                printf(" %c", 'a' + i);
    putchar('\n');
}

/* The whole picture, over the last one. */
static void draw(void)
{
    static const char *up = "";

    printf("%s\033[J weir: 6 threads, 6 tasks, one semaphore, first come, first served\n", up);
    puts(" a digit: holds that many permits   .: waits   x: gave up");
    printf(" now             \033[1m%s\033[0m\n", act_text);
    draw_queue();
    putchar('\n');
    draw_chart();
    fflush(stdout);
    up = "\033[20A\r";
}

/* ---- the whole ----------------------------------------------------------------- */

static void hire(void)
{
    static const unsigned char asks[WORKERS] = {1, 1, 2, 1, 1, 2, 1, 1, 3, 1, 1, PERMITS};

    if (weir_runtime_open(NULL, &runtime) < 0)
        abort();
    began_ns = weir_now_ns();
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];

        w->asks = asks[i];
        w->random = (unsigned)i * 7919u;
        w->comes_at_ms = i == HASTY ? 2200 : i == HEAVY ? 1000 : i * 20;
        w->patience_ms = i == HASTY ? 150 : 0;
        if (i < THREADS ? pthread_create(&w->thread, NULL, thread_run, w) != 0
                        : weir_runtime_spawn(runtime, worker_run, w, NULL) < 0)
            abort();
    }
}

static void show(void)
{
    bool over = false;

    while (!over) {
        over = weir_event_is_set(&drained);
        book_open();
        play();
        chart();
        if (on_terminal)
            draw();
        book_shut();
        nap(scaled_ns(50));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    weir_runtime_close(runtime, WEIR_FOREVER);
}

static int verdict(void)
{
    uint64_t lost = PERMITS - weir_sem_available(&slots);

    if (!on_terminal) {
        putchar('\n');
        draw_chart();
    }
    printf("\n %u grants, %u to threads and %u to tasks; longest wait %.2f s; %u gave up\n",
           book.to_threads + book.to_tasks, book.to_threads, book.to_tasks,
           (double)(book.longest_wait_ns * speed) / WEIR_S, book.gave_up);
    printf(" order inversions: %d; permits lost: %d\n", (int)book.inversions, (int)lost);
    return !(book.to_threads > 0 && book.to_tasks > 0 && lost == 0 && book.held == 0 &&
             book.inversions == 0 && book.overdrafts == 0);
}

int main(int argc, char **argv)
{
    const char *term = getenv("TERM");
    struct winsize window;

    if (argc > 1)
        speed = strtol(argv[1], NULL, 10);
    if (speed < 1 || speed > 100) {
        fputs("usage: demo [SPEED], from 1 to 100\n", stderr);
        return 2;
    }
    on_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row >= 24 &&
                  window.ws_col >= 80 && term && strcmp(term, "dumb") != 0;
    setvbuf(stdout, NULL, on_terminal ? _IOFBF : _IOLBF, 1 << 16);
    alarm(9); /* ends it, if nothing else does */

    hire();
    show();
    return verdict();
}
