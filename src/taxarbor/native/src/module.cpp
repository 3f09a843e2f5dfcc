// The compiled part of taxarbor: free functions on buffers, no state, GIL released.
#include "common.hpp"

NB_MODULE(_kernels, m) {
  bind_dense(m);
  bind_csr(m);
  bind_hinge(m);
  bind_descent(m);
  bind_assign(m);
  bind_threshold(m);
  bind_ward(m);
}
