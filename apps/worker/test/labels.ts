/** Labels of a running sandbox's VM, as an earlier worker process wrote them. */
export const LABELS = {
  version: 1,
  role: 'sandbox',
  vm_id: 'vm_1',
  generation: 3,
  revision: 7,
  tenant_id: 'usr_a',
  state: 'running',
  created_at: '2026-01-01T00:00:00.000Z',
  running_at: '2026-01-01T00:00:01.000Z',
  placement: {
    template: 'standard',
    size: {},
    idle_timeout_seconds: 60,
    max_lifetime_seconds: 7200,
  },
  lifetime_ends_at: Number.MAX_SAFE_INTEGER,
};
