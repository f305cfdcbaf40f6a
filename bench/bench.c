/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REPEAT_DEFAULT = 7, REPEAT_MAX = 99, QUICK_DIVISOR = 20, STACK_BYTES = 64 * 1024 };

static const int64_t window_ns = 100 * 1000 * 1000;

static struct {
    unsigned repeat;  /* 0: the default */
    unsigned at_most; /* 0: no limit */
    bool quick, list, samples;
    const char *only;
    cpu_set_t cpus; /* as the program was started, before anyone was pinned */
} options;

/* ---- for measurements ---------------------------------------------------------- */

int64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

long bench_times(long full)
{
    long few = full / QUICK_DIVISOR;

    if (!options.quick)
        return full;
    return few > 0 ? few : 1;
}

int64_t bench_window_ns(void)
{
    return options.quick ? window_ns / QUICK_DIVISOR : window_ns;
}

static size_t nth_cpu(unsigned nth)
{
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &options.cpus) && nth-- == 0)
            return cpu;
    bench_fail("not enough CPUs");
}

void bench_pin(unsigned nth)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(nth_cpu(nth), &one);
    BENCH_CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

void bench_unpin(void)
{
    BENCH_CHECK(sched_setaffinity(0, sizeof options.cpus, &options.cpus) == 0);
}

void bench_spawn(pthread_t *ret_thread, void *(*fn)(void *), void *arg)
{
    pthread_attr_t attr;

    BENCH_CHECK(pthread_attr_init(&attr) == 0);
    BENCH_CHECK(pthread_attr_setstacksize(&attr, STACK_BYTES) == 0);
    /* Whoever pinned the starter did not mean the started. */
    BENCH_CHECK(pthread_attr_setaffinity_np(&attr, sizeof options.cpus, &options.cpus) == 0);
    BENCH_CHECK(pthread_create(ret_thread, &attr, fn, arg) == 0);
    pthread_attr_destroy(&attr);
}

void bench_join(pthread_t thread)
{
    BENCH_CHECK(pthread_join(thread, NULL) == 0);
}

/* The state letter stands behind the name, which is in brackets and may hold any. */
static bool thread_is_asleep(const char *tid)
{
    char path[64], line[256] = "";
    FILE *file;
    const char *end;

    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
    file = fopen(path, "re");
    if (!file)
        return false; /* it ended in the meantime */
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    fclose(file);
    end = strrchr(line, ')');
    return end && end[1] == ' ' && end[2] == 'S';
}

static unsigned count_asleep(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned count = 0;

    BENCH_CHECK(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        if (task->d_name[0] != '.')
            count += thread_is_asleep(task->d_name);
    closedir(tasks);
    return count;
}

void bench_until_asleep(unsigned count)
{
    while (count_asleep() < count)
        sched_yield();
}

double bench_external(const char *program, const char *what, long n)
{
    char path[512], command[640];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    double value = BENCH_ABSENT;
    FILE *out;

    BENCH_CHECK(length > 0);
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    snprintf(command, sizeof command, "%s/%s", path, program);
    if (access(command, X_OK) != 0)
        return BENCH_ABSENT;
    snprintf(command, sizeof command, "'%s/%s' %s %ld", path, program, what, n);
    out = popen(command, "re");
    BENCH_CHECK(out);
    BENCH_CHECK(fscanf(out, "%lf", &value) == 1);
    BENCH_CHECK(pclose(out) == 0);
    return value;
}

void bench_fail(const char *what)
{
    fprintf(stderr, "%s: failed: %s\n", program_invocation_short_name, what);
    exit(1);
}

/* ---- running a question -------------------------------------------------------- */

struct samples {
    double values[REPEAT_MAX];
    double median; /* or BENCH_ABSENT */
};

static unsigned case_count(const struct bench_question *question)
{
    unsigned count = 0;

    while (count < BENCH_CASES_MAX && question->cases[count].name)
        count++;
    return count;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    if (values[0] < 0)
        return BENCH_ABSENT;
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Each repetition starts with another implementation, so that nobody always runs
 * first, or behind the same neighbour. */
static void run_repetitions(const struct bench_question *question, unsigned repeat,
                            struct samples *results)
{
    unsigned count = case_count(question);

    for (unsigned round = 0; round < repeat; round++) {
        for (unsigned i = 0; i < count; i++) {
            unsigned which = (i + round) % count;
            double value = question->cases[which].measure();

            results[which].values[round] = value;
            if (options.samples)
                fprintf(stderr, "%s %s %.4g\n", question->name, question->cases[which].name, value);
        }
    }
    for (unsigned i = 0; i < count; i++)
        results[i].median = median(results[i].values, repeat);
}

/* ---- JSON ---------------------------------------------------------------------- */

/* Three digits or more, and no exponents: people read these lines too. */
static void print_number(double value)
{
    printf("%.*f", value < 1 ? 4 : value < 100 ? 2 : value < 10000 ? 1 : 0, value);
}

static void print_role(const struct bench_question *question, const struct samples *results,
                       enum bench_role role, const char *key)
{
    unsigned printed = 0;

    for (unsigned i = 0; i < case_count(question); i++) {
        if (question->cases[i].role != role || results[i].median < 0)
            continue;
        if (printed++)
            printf(",\"%s\":", question->cases[i].name);
        else
            printf(",\"%s\":{\"%s\":", key, question->cases[i].name);
        print_number(results[i].median);
    }
    if (printed)
        printf("}");
    else if (role == BENCH_PEER)
        printf(",\"%s\":{}", key);
}

static void print_goal(const struct bench_goal *goal)
{
    static const char *const keys[] = {
        [BENCH_AT_MOST] = "at_most",
        [BENCH_AT_LEAST_FASTER] = "at_least_faster",
        [BENCH_GOOD_CASE] = "at_least_faster",
        [BENCH_AT_LEAST] = "at_least",
    };

    printf("{");
    if (goal->peer)
        printf("\"peer\":\"%s\",", goal->peer);
    printf("\"%s\":%g", keys[goal->bound], goal->times);
    printf("%s}", goal->bound == BENCH_GOOD_CASE ? ",\"good_case\":true" : "");
}

static void print_goals(const struct bench_question *question)
{
    printf(",\"goals\":[");
    for (unsigned i = 0; i < BENCH_GOALS_MAX && question->goals[i].bound; i++) {
        printf("%s", i ? "," : "");
        print_goal(&question->goals[i]);
    }
    printf("]");
}

static double weir_median(const struct bench_question *question, const struct samples *results)
{
    for (unsigned i = 0; i < case_count(question); i++)
        if (question->cases[i].role == BENCH_WEIR)
            return results[i].median;
    bench_fail("a question without weir");
}

static void ask(const struct bench_question *question)
{
    static struct samples results[BENCH_CASES_MAX];
    unsigned repeat = options.repeat ? options.repeat : options.quick ? 1 : REPEAT_DEFAULT;

    if (options.at_most && repeat > options.at_most)
        repeat = options.at_most;
    run_repetitions(question, repeat, results);
    printf("{\"question\":\"%s\",\"unit\":\"%s\",\"better\":\"%s\",\"weir\":", question->name,
           question->unit, strncmp(question->unit, "per ", 4) == 0 ? "more" : "less");
    print_number(weir_median(question, results));
    print_role(question, results, BENCH_PEER, "peers");
    print_role(question, results, BENCH_WEAKER, "weaker");
    print_role(question, results, BENCH_LIMIT, "limits");
    printf(",\"repeat\":%u", repeat);
    print_goals(question);
    printf("}\n");
    fflush(stdout);
}

/* ---- main ---------------------------------------------------------------------- */

static bool parse_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"repeat", required_argument, NULL, 'r'}, {"quick", no_argument, NULL, 'q'},
        {"only", required_argument, NULL, 'o'},   {"list", no_argument, NULL, 'l'},
        {"samples", no_argument, NULL, 's'},      {NULL, 0, NULL, 0},
    };

    for (int letter; (letter = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (letter) {
        case 'r':
            options.repeat = (unsigned)strtoul(optarg, NULL, 10);
            if (options.repeat < 1 || options.repeat > REPEAT_MAX)
                return false;
            break;
        case 'q':
            options.quick = true;
            break;
        case 'o':
            options.only = optarg;
            break;
        case 'l':
            options.list = true;
            break;
        case 's':
            options.samples = true;
            break;
        default:
            return false;
        }
    }
    return optind == argc;
}

static void ask_or_say_why_not(const struct bench_question *question)
{
    if (options.only && strcmp(options.only, question->name) != 0)
        return;
    if (options.list)
        printf("%s\n", question->name);
    else if ((unsigned)CPU_COUNT(&options.cpus) < question->cpus_needed)
        fprintf(stderr, "%s: skipped, it needs %u CPUs\n", question->name, question->cpus_needed);
    else
        ask(question);
}

void bench_repeat_at_most(unsigned repeat)
{
    options.at_most = repeat;
}

int bench_main(int argc, char **argv, const struct bench_question *questions, size_t count)
{
    if (!parse_options(argc, argv)) {
        fprintf(stderr,
                "usage: %s [--repeat 1-%d] [--quick] [--only QUESTION] [--list] [--samples]\n",
                program_invocation_short_name, REPEAT_MAX);
        return 2;
    }
    BENCH_CHECK(sched_getaffinity(0, sizeof options.cpus, &options.cpus) == 0);
    for (size_t i = 0; i < count; i++)
        ask_or_say_why_not(&questions[i]);
    return 0;
}
