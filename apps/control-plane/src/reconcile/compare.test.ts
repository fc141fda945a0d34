import type { WorkerSandbox } from '@svc/contract';
import type { LedgerEntry } from '@svc/store';
import { expect, test } from 'vitest';
import { compare } from './compare.ts';

const GRACE_MS = 1000;
const RESTART_GRACE_MS = 100;

function entry(changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    vm_id: 'vm_1',
    worker_id: 'w1',
    generation: 1,
    state: 'running',
    delete_requested_at: null,
    age_ms: 60_000,
    placed_before_registration: false,
    ...changes,
  };
}

function report(changes: Partial<WorkerSandbox> = {}): WorkerSandbox {
  return {
    vm_id: 'vm_1',
    generation: 1,
    tenant_id: 'usr_1',
    template: 'standard',
    state: 'running',
    vcpu: 1,
    cpu_fraction: 1,
    memory_mib: 512,
    disk_mib: 2048,
    rootfs: 'r',
    host_port: 1,
    endpoint: 'e',
    created_at: '2026-11-21T12:00:00.000Z',
    active_connections: 0,
    cpu_seconds: 0,
    ...changes,
  };
}

const differences = (ledger: LedgerEntry[], reports: WorkerSandbox[]) =>
  compare({
    workerId: 'w1',
    ledger,
    reports,
    graceMs: GRACE_MS,
    restartGraceMs: RESTART_GRACE_MS,
  });
const order = { vm_id: 'vm_1', generation: 1, reason: 'deleted' };

test('returns nothing when both agree', () => {
  expect(differences([entry()], [report()])).toEqual({
    destroy: [],
    unknown: [],
    ended: [],
  });
});

test('destroys the sandboxes that a worker should not hold', () => {
  expect(differences([entry({ state: 'destroyed' })], [report()]).destroy).toEqual([order]);
  expect(differences([entry({ generation: 2 })], [report()]).destroy).toEqual([order]);
  const moved = entry({ worker_id: 'w2', generation: 2 });
  expect(differences([moved], [report()]).destroy).toEqual([order]);
  const wish = entry({ delete_requested_at: new Date() });
  expect(differences([wish], [report()]).destroy).toEqual([order]);
});

test('does not order the end of a sandbox of which the ledger knows less than its worker', () => {
  const elsewhere = entry({ worker_id: 'w2' });
  const cases = [
    { ledger: [], reported: report() },
    { ledger: [elsewhere], reported: report() },
    { ledger: [entry()], reported: report({ generation: 2 }) },
    { ledger: [entry({ state: 'destroyed' })], reported: report({ generation: 2 }) },
  ];
  for (const { ledger, reported } of cases) {
    expect(differences(ledger, [reported])).toMatchObject({ destroy: [], unknown: [reported] });
  }
});

test('does not order the end of a sandbox that has ended', () => {
  const ended = [report({ state: 'destroyed' })];
  expect(differences([], ended)).toMatchObject({ destroy: [], unknown: [] });
});

test('ends a sandbox in the ledger for the reason that the worker reports', () => {
  const ended = report({ state: 'destroyed', end_reason: 'idle_timeout' });
  expect(differences([entry()], [ended]).ended).toMatchObject([{ reason: 'idle_timeout' }]);
});

test('counts a sandbox that is missing on its worker as lost', () => {
  expect(differences([entry()], []).ended).toMatchObject([{ reason: 'worker_lost' }]);
  expect(differences([entry({ state: 'booting' })], []).ended).toMatchObject([
    { reason: 'boot_failed' },
  ]);
  const wish = entry({ delete_requested_at: new Date() });
  expect(differences([wish], []).ended).toMatchObject([{ reason: 'deleted' }]);
});

test('tolerates that a report lacks a sandbox placed just now', () => {
  expect(differences([entry({ age_ms: GRACE_MS - 1 })], []).ended).toEqual([]);
});

test('ends a creation that a restart of the worker interrupted', () => {
  const before = { state: 'creating', placed_before_registration: true } as const;
  const lost = entry({ ...before, age_ms: RESTART_GRACE_MS + 1 });
  expect(differences([lost], []).ended).toMatchObject([{ reason: 'boot_failed' }]);
  const lately = entry({ ...before, age_ms: RESTART_GRACE_MS - 1 });
  expect(differences([lately], []).ended).toEqual([]);
});

test('does not accept an older generation in place of the current one', () => {
  const outcome = differences([entry({ generation: 2 })], [report()]);
  expect(outcome.ended).toMatchObject([{ entry: { generation: 2 } }]);
});

test('leaves the sandboxes of another worker alone', () => {
  expect(differences([entry({ worker_id: 'w2' })], []).ended).toEqual([]);
});
