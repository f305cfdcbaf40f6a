/* SPDX-License-Identifier: MIT */
/* semaphores.hpp - weir's semaphore and its peers behind one shape.
 *
 * Each is made with a capacity of which some is taken, and has acquire() and release()
 * of one permit.  Results are checked where there are any: callers have to, too.
 */
#ifndef BENCH_SEMAPHORES_HPP
#define BENCH_SEMAPHORES_HPP

#include <atomic>
#include <semaphore>

#include <nsync.h>
#include <pthread.h>
#include <semaphore.h>
#include <weir/sem.h>

#include "bench.h"
#include "futex.hpp"

class WeirSem
{
    weir_sem sem_;

  public:
    WeirSem(unsigned capacity, unsigned taken)
    {
        BENCH_CHECK(weir_sem_init(&sem_, capacity) == 0);
        if (taken)
            BENCH_CHECK(weir_sem_try_acquire(&sem_, taken) == 0);
    }
    void acquire()
    {
        BENCH_CHECK(weir_sem_acquire(&sem_, 1, WEIR_FOREVER) == 0);
    }
    void release()
    {
        BENCH_CHECK(weir_sem_release(&sem_, 1) == 0);
    }
};

/* glibc.  A woken waiter competes with whoever comes along. */
class PosixSem
{
    sem_t sem_;

  public:
    PosixSem(unsigned capacity, unsigned taken)
    {
        BENCH_CHECK(sem_init(&sem_, 0, capacity - taken) == 0);
    }
    void acquire()
    {
        while (sem_wait(&sem_) != 0) {
        }
    }
    void release()
    {
        BENCH_CHECK(sem_post(&sem_) == 0);
    }
};

/* libstdc++.  Spins for a while before it sleeps. */
class StdSem
{
    std::counting_semaphore<> sem_;

  public:
    StdSem(unsigned capacity, unsigned taken) : sem_(capacity - taken)
    {
    }
    void acquire()
    {
        sem_.acquire();
    }
    void release()
    {
        sem_.release();
    }
};

/* nsync has no semaphore; a number and a conditional critical section are its idiom. */
class NsyncSem
{
    nsync::nsync_mu lock_;
    long free_;

    static int is_free(const void *sem)
    {
        return static_cast<const NsyncSem *>(sem)->free_ > 0;
    }

  public:
    NsyncSem(unsigned capacity, unsigned taken) : free_(capacity - taken)
    {
        nsync::nsync_mu_init(&lock_);
    }
    void acquire()
    {
        nsync::nsync_mu_lock(&lock_);
        if (!is_free(this)) /* it would look by itself, at the price of a call */
            nsync::nsync_mu_wait(&lock_, is_free, this, nullptr);
        free_--;
        nsync::nsync_mu_unlock(&lock_);
    }
    void release()
    {
        nsync::nsync_mu_lock(&lock_);
        free_++;
        nsync::nsync_mu_unlock(&lock_);
    }
};

/* What one writes with pthreads to have what weir promises: a queue of waiters, each
 * with a weight and a condition of its own, to whom permits are handed in order. */
class PthreadFifoSem
{
    struct Waiter {
        Waiter *next = nullptr;
        long weight;
        bool granted = false;
        pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
    };

    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
    long free_;
    Waiter *oldest_ = nullptr;
    Waiter **end_ = &oldest_;

    void wait_in_queue(long weight)
    {
        Waiter self{.weight = weight};

        *end_ = &self;
        end_ = &self.next;
        while (!self.granted)
            pthread_cond_wait(&self.wake, &lock_);
        pthread_cond_destroy(&self.wake);
    }

    void serve()
    {
        while (oldest_ && oldest_->weight <= free_) {
            Waiter *first = oldest_;

            oldest_ = first->next;
            if (!oldest_)
                end_ = &oldest_;
            free_ -= first->weight;
            first->granted = true;
            pthread_cond_signal(&first->wake);
        }
    }

  public:
    PthreadFifoSem(unsigned capacity, unsigned taken) : free_(capacity - taken)
    {
    }
    void acquire(long weight = 1)
    {
        pthread_mutex_lock(&lock_);
        if (!oldest_ && free_ >= weight)
            free_ -= weight;
        else
            wait_in_queue(weight);
        pthread_mutex_unlock(&lock_);
    }
    void release(long weight = 1)
    {
        pthread_mutex_lock(&lock_);
        free_ += weight;
        serve();
        pthread_mutex_unlock(&lock_);
    }
};

/* The least that a hand-off through the kernel can be: no queue, no count, one waiter. */
class RawFutex
{
    std::atomic<uint32_t> free_;

  public:
    RawFutex(unsigned capacity, unsigned taken) : free_(capacity - taken)
    {
    }
    void acquire()
    {
        while (free_.exchange(0, std::memory_order_acquire) == 0)
            futex_wait(free_, 0);
    }
    void release()
    {
        free_.store(1, std::memory_order_release);
        futex_wake(free_, 1);
    }
};

/* The same between two threads that never sleep: what the cache line costs. */
class SpinFlag
{
    std::atomic<uint32_t> free_;

  public:
    SpinFlag(unsigned capacity, unsigned taken) : free_(capacity - taken)
    {
    }
    void acquire()
    {
        while (free_.load(std::memory_order_acquire) == 0)
            cpu_pause();
        free_.store(0, std::memory_order_relaxed);
    }
    void release()
    {
        free_.store(1, std::memory_order_release);
    }
};

/* One compare-and-swap to take and one to give back; nobody can ever wait. */
class CasPair
{
    std::atomic<uint64_t> free_;

  public:
    CasPair(unsigned capacity, unsigned taken) : free_(capacity - taken)
    {
    }
    void acquire()
    {
        uint64_t now = free_.load(std::memory_order_relaxed);

        while (!free_.compare_exchange_weak(now, now - 1, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
        }
    }
    void release()
    {
        uint64_t now = free_.load(std::memory_order_relaxed);

        while (!free_.compare_exchange_weak(now, now + 1, std::memory_order_release,
                                            std::memory_order_relaxed)) {
        }
    }
};

#endif
