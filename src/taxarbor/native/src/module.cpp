// The compiled part of taxarbor: one class for the data of a node, free functions on it and on
// plain arrays. Everything that comes in is checked; ValueError says what is wrong with it.
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define TAXARBOR_FORKS
#endif

#include "common.hpp"

NB_MODULE(_kernels, m) {
  nb::set_leak_warnings(false);  // rows that outlive the interpreter are no news to its user
#ifdef TAXARBOR_FORKS
  pthread_atfork(nullptr, nullptr, [] {
    is_forked = true;
    sweeps_under_way = 0;
  });
#endif
  bind_data(m);
  bind_pair(m);
  bind_kway(m);
  bind_hinge(m);
  bind_assign(m);
  bind_ward(m);
  bind_halve(m);
  bind_planes(m);
  bind_route(m);
}
