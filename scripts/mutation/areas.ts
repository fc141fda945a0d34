/** A part of the code in which a changed line must make a test fail. */
export interface Area {
  /** Files or folders whose code is mutated; their test files are left out. */
  readonly code: readonly string[];
  /** Files or folders with the tests that must notice: those next to the code, which are fast. */
  readonly tests: readonly string[];
}

/** The security-critical areas, by the name that `npm run mutation -- <area>` takes. */
export const AREAS: Readonly<Record<string, Area>> = {
  egress: { code: ['packages/egress/src'], tests: ['packages/egress/src'] },
  tokens: {
    code: ['packages/service-kit/src/tokens'],
    tests: ['packages/service-kit/src/tokens'],
  },
  reaper: { code: ['apps/worker/src/reaper'], tests: ['apps/worker/src/reaper'] },
  authentication: {
    code: [
      'apps/control-plane/src/auth/{account-tokens,authenticators,bearer,caller}.ts',
      'apps/control-plane/src/auth/{statement-owners,tenant-requests}.ts',
    ],
    tests: [
      'apps/control-plane/src/auth/account-tokens.test.ts',
      'apps/control-plane/src/auth/authenticators.test.ts',
      'apps/control-plane/src/auth/callers.test.ts',
    ],
  },
  identities: {
    code: [
      'apps/control-plane/src/auth/{component-authenticator,enrolments}.ts',
      'packages/store/src/repositories/components.ts',
    ],
    tests: [
      'apps/control-plane/src/auth/callers.test.ts',
      'apps/control-plane/src/auth/component-authenticator.test.ts',
      'apps/control-plane/src/routes/internal/components.test.ts',
      'packages/store/src/repositories/components.test.ts',
    ],
  },
  'signing-keys': {
    code: [
      'apps/control-plane/src/auth/signing-keys.ts',
      'packages/store/src/repositories/signing-keys.ts',
    ],
    tests: [
      'apps/control-plane/src/auth/signing-key-reads.test.ts',
      'packages/store/src/repositories/signing-keys.test.ts',
    ],
  },
  tenants: {
    code: ['apps/control-plane/src/tenants'],
    tests: [
      'apps/control-plane/src/tenants/one-time-codes.test.ts',
      'apps/control-plane/src/tenants/outbox.test.ts',
      'apps/control-plane/src/tenants/tenants.test.ts',
    ],
  },
  keys: { code: ['apps/control-plane/src/keys'], tests: ['apps/control-plane/src/keys'] },
  'session-access': {
    code: ['apps/control-plane/src/sessions/access.ts'],
    tests: ['apps/control-plane/src/sessions/access.test.ts'],
  },
  idempotency: {
    code: [
      'apps/control-plane/src/sandboxes/idempotent-create.ts',
      'packages/store/src/repositories/idempotency.ts',
    ],
    tests: [
      'apps/control-plane/src/sandboxes/idempotency-rules.test.ts',
      'packages/store/src/repositories/idempotency.test.ts',
    ],
  },
  placement: {
    code: [
      'packages/store/src/repositories/sandboxes/placement.ts',
      'packages/store/src/repositories/sandboxes/choose-worker.ts',
    ],
    tests: [
      'packages/store/src/repositories/sandboxes/placement.test.ts',
      'packages/store/src/repositories/sandboxes/large-fleet.test.ts',
    ],
  },
  endings: {
    code: ['packages/store/src/repositories/sandboxes/ending.ts'],
    tests: [
      'packages/store/src/repositories/sandboxes/ending.test.ts',
      'packages/store/src/repositories/sandboxes/end-all.test.ts',
    ],
  },
  gateway: { code: ['apps/worker/src/gateway'], tests: ['apps/worker/src/gateway'] },
  lifecycle: { code: ['apps/worker/src/sandbox'], tests: ['apps/worker/src/sandbox'] },
};
