/* SPDX-License-Identifier: MIT */
/* Every atomic access of weir, by seven verbs.  Nothing else may touch a word that
 * two threads share without a lock, so that these few lines can be exchanged for a
 * version that a scheduler of our own controls.
 *
 * `peek` and `poke` order nothing: a hint, a counter, or a value that a later cas
 * confirms.  `get` sees everything that came before the store it reads, and `put`
 * publishes; `swap`, `cas` and `add` do both.  All threads agree on the order of
 * gets, swaps, cases and adds: whoever announces itself with a swap and then gets what another swapped in
 * will not miss it.  On x86-64 and aarch64 that costs no more than less would.  There
 * are no fences: TSan cannot follow them, and neither can most readers. */
#ifndef WEIR_BASE_ATOMIC_H
#define WEIR_BASE_ATOMIC_H

#define atomic_peek(p)    __atomic_load_n((p), __ATOMIC_RELAXED)
#define atomic_poke(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define atomic_get(p)     __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define atomic_put(p, v)  __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define atomic_swap(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define atomic_add(p, v)  __atomic_add_fetch((p), (v), __ATOMIC_SEQ_CST)

/* True if *p was *seen and is now v; else *seen is what it was. */
#define atomic_cas(p, seen, v) \
    __atomic_compare_exchange_n((p), (seen), (v), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

#endif
