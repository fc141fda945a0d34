import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type GuestTree, MicrovmError, type MicrovmTree } from '@svc/microvm';
import { type GuestDaemon, startGuestDaemon } from '@svc/microvm/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { MemoryMicrovm } from '../../test/memory-microvm.ts';
import { MemoryWorkspace } from '../../test/memory-workspace.ts';
import { placement } from '../../test/placement.ts';
import { systemClock } from '../clock.ts';
import { ControlPlaneError } from '../control-plane/control-plane-transport.ts';
import { assignmentOf } from '../sandbox/assignment.ts';
import type { MountedWorkspace } from '../sandbox/workspace.ts';
import { mountWorkspace } from './mount-workspace.ts';

const SIZE = { id: 'm', template: 'standard', image: 'i', vcpu: 1, memoryMib: 512, diskMib: 1024 };
const NEVER = new AbortController().signal;

let directory: string;
let daemon: GuestDaemon;
let root: string;
let tree: GuestTree;
let vm: MemoryMicrovm;
let stored: MemoryWorkspace;
let faults: string[];
let count = 0;

beforeAll(async () => {
  daemon = await startGuestDaemon();
  directory = daemon.directory;
});

afterAll(() => daemon.stop());

afterEach(() => daemon.closeTrees());

beforeEach(() => {
  count += 1;
  root = join(directory, `root-${count}`);
  vm = new MemoryMicrovm(SIZE, () => undefined);
  tree = daemon.tree(root);
  vm.trees = () => tree;
  stored = new MemoryWorkspace();
  faults = [];
});

function mount(timeouts: Parameters<typeof mountWorkspace>[2]['timeouts'] = {}): MountedWorkspace {
  const request = placement();
  const workspace = { app_id: 'a', capset_id: 'c' };
  const placed = { ...request, placement: { ...request.placement, workspace } };
  const made = mountWorkspace({ assignment: assignmentOf(placed, systemClock) }, vm, {
    deps: stored.deps,
    onFault: (_error, action) => void faults.push(action.replace(/ of vm_\w+$/, '')),
    timeouts,
  });
  if (made === undefined) throw new Error('no workspace');
  return made;
}

async function started(): Promise<MountedWorkspace> {
  const made = mount();
  await made.load(NEVER);
  made.start();
  return made;
}

it('is for sandboxes whose placement names one', () => {
  const sandbox = { assignment: assignmentOf(placement(), systemClock) };
  const options = { deps: stored.deps, onFault: () => undefined };
  expect(mountWorkspace(sandbox, vm, options)).toBeUndefined();
});

it('tells customers why it could not be loaded', async () => {
  stored.onCall = () => {
    throw new ControlPlaneError(503, 'object_store_unavailable');
  };
  await expect(mount().load(NEVER)).rejects.toMatchObject({ code: 'workspace_unavailable' });
  stored.onCall = () => undefined;
  vm.trees = () =>
    ({
      write: async () => {
        throw new MicrovmError('disk_full', 'no space');
      },
    }) as unknown as MicrovmTree;
  await expect(mount().load(NEVER)).rejects.toMatchObject({ code: 'workspace_too_large' });
  expect(faults).toEqual(['load the workspace', 'load the workspace']);
});

it('saves nothing at the end of a sandbox whose workspace was not loaded', async () => {
  await mount().finish();
  expect([stored.commits, faults]).toEqual([[], []]);
});

it('saves at the end, also of a paused sandbox, what was written meanwhile', async () => {
  const workspace = await started();
  await writeFile(join(root, 'a'), '1');
  await workspace.beforePause();
  await writeFile(join(root, 'b'), '2');
  await vm.pause(NEVER);
  await workspace.finish();
  expect([stored.paths, vm.resumes, faults]).toEqual([['a', 'b'], 1, []]);
});

it('saves before a restart of the worker, but not what is paused', async () => {
  const workspace = await started();
  await writeFile(join(root, 'a'), '1');
  await workspace.release();
  expect(stored.paths).toEqual(['a']);
  const next = mount();
  next.start();
  await writeFile(join(root, 'b'), '2');
  await vm.pause(NEVER);
  await next.release();
  expect([stored.paths, vm.resumes]).toEqual([['a'], 0]);
});

it('prevents a pause when the control plane or the object store fails, and none for the guest', async () => {
  const workspace = await started();
  await writeFile(join(root, 'a'), '1');
  stored.onCall = () => {
    throw new ControlPlaneError(503, 'object_store_unavailable');
  };
  await expect(workspace.beforePause()).rejects.toMatchObject({ code: 'workspace_unavailable' });
  stored.onCall = () => undefined;
  await workspace.beforePause();
  expect(stored.paths).toEqual(['a']);
  await rm(root, { recursive: true });
  await workspace.beforePause();
  expect(faults).toHaveLength(2);
  expect(stored.paths).toEqual(['a']);
});

it('saves at the end although the object store was down, but not for a sandbox that is elsewhere by now', async () => {
  const workspace = await started();
  await writeFile(join(root, 'a'), '1');
  let failures = 4;
  stored.onCall = (operation) => {
    if (operation !== 'commit' || failures === 0) return;
    failures -= 1;
    throw new ControlPlaneError(503, 'object_store_unavailable');
  };
  await workspace.finish();
  expect([stored.paths, failures, faults]).toEqual([['a'], 0, []]);
  await writeFile(join(root, 'b'), '2');
  stored.onCall = () => {
    throw new ControlPlaneError(409, 'stale_generation');
  };
  await workspace.finish();
  expect([stored.paths, faults]).toEqual([['a'], ['save the workspace at the end']]);
});

it('gives up in time when the guest does not answer', async () => {
  const workspace = await started();
  await writeFile(join(root, 'a'), '1');
  const silence = (_request: unknown, signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    );
  vm.trees = () => ({ list: silence, write: silence }) as unknown as MicrovmTree;
  await expect(mount({ loadMs: 50 }).load(NEVER)).rejects.toMatchObject({
    code: 'workspace_unavailable',
  });
  const adopted = mount({ pauseMs: 50, finishMs: 50 });
  adopted.start();
  await expect(adopted.beforePause()).rejects.toMatchObject({ code: 'workspace_unavailable' });
  await adopted.finish();
  expect(faults).toHaveLength(3);
  await workspace.finish();
  expect(stored.paths).toEqual(['a']);
});
