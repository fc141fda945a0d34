import { GUEST_LINK } from '@svc/contract';
import { TAP } from '../../network/index.ts';
import type { BootRequest, RestoreVmRequest, VmShape } from '../vmm.ts';

/**
 * Megabytes of translated code a VM may keep without KVM. A full cache is emptied whole: with half of this, what a VM
 * in the pool has rehearsed is lost again. All of it is private memory of the VM.
 */
const TRANSLATION_CACHE_MIB = 64;
/** A VM that is booted to be frozen does everything for the first time, and soon gives its memory back. */
const BOOT_TRANSLATION_CACHE_MIB = 128;
/** Bytes of console output that are kept; older ones are dropped. */
const CONSOLE_BYTES = 65_536;

export interface Accelerator {
  readonly kind: 'kvm' | 'tcg';
  readonly cpu: string;
}

/** Where a VM's memory comes from: a file that is filled, or one that is mapped privately. */
export interface MemorySource {
  readonly path: string;
  readonly mapping: 'shared' | 'private' | 'private-read-only';
}

/** Arguments of a VM that boots from its kernel. */
export function bootArguments(
  request: BootRequest,
  accelerator: Accelerator,
  memory: MemorySource,
  tscKhz: number,
): string[] {
  const kernelWords = [
    'console=ttyS0',
    'reboot=t',
    'panic=-1',
    'net.ifnames=0',
    'quiet',
    // Without it a busy machine can leave the guest's clock calibration without a reference, for ever.
    `tsc_early_khz=${tscKhz}`,
    // For programs of the guest that do better with other settings when it is emulated.
    `svc.accelerator=${accelerator.kind}`,
  ];
  return [
    ...machine(request, acceleratorWords(accelerator, BOOT_TRANSLATION_CACHE_MIB), memory),
    '-kernel',
    request.kernel,
    '-initrd',
    request.initrd,
    '-append',
    kernelWords.join(' '),
  ];
}

/**
 * Arguments of a VM that waits for a snapshot's state. It names no kernel: what the kernel's loader
 * would read stays unread, and unneeded memory unused.
 */
export function restoreArguments(
  request: RestoreVmRequest,
  accelerator: Accelerator,
  memory: MemorySource,
): string[] {
  const words = acceleratorWords(accelerator, TRANSLATION_CACHE_MIB);
  return [...machine(request, words, memory), '-S', '-incoming', 'defer'];
}

function machine(
  request: BootRequest | RestoreVmRequest,
  accelerator: { readonly accel: string; readonly cpu: string },
  memory: MemorySource,
): string[] {
  const { confinement, rootfs, ...shape } = request;
  const directory = confinement.insideDirectory;
  return [
    ['-nodefaults', '-no-user-config', '-display', 'none'],
    ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ['-M', 'microvm,memory-backend=memory'],
    ['-accel', accelerator.accel],
    ['-cpu', accelerator.cpu],
    ['-smp', String(shape.vcpu)],
    ['-m', `${shape.memoryMib}M`],
    ['-object', memoryWords(shape, memory)],
    ['-chardev', `ringbuf,id=console,size=${CONSOLE_BYTES}`],
    ['-serial', 'chardev:console'],
    ['-qmp', `unix:${directory}/qmp,server=on,wait=off`],
    ['-blockdev', blockdev({ 'node-name': 'base', ...rawFile(rootfs), 'read-only': true })],
    ['-blockdev', blockdev(overlay(`${directory}/disk.qcow2`))],
    // A guest that writes while the host's disk is full stands still until there is room: an error would
    // make its file system read-only for good, and lose what it had been told is written.
    ['-device', 'virtio-blk-device,id=root,drive=disk,werror=enospc,rerror=report'],
    ['-netdev', `tap,id=net,ifname=${TAP},script=no,downscript=no`],
    ['-device', `virtio-net-device,netdev=net,mac=${GUEST_LINK.guestMac}`],
  ].flat();
}

function acceleratorWords({ kind, cpu }: Accelerator, cacheMib: number) {
  return { accel: kind === 'kvm' ? 'kvm' : `tcg,tb-size=${cacheMib}`, cpu };
}

function memoryWords({ memoryMib }: VmShape, { path, mapping }: MemorySource): string {
  const words = `memory-backend-file,id=memory,size=${memoryMib}M,mem-path=${path}`;
  if (mapping === 'shared') return `${words},share=on`;
  return mapping === 'private' ? `${words},share=off` : `${words},share=off,readonly=on,rom=off`;
}

function blockdev(options: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(options);
}

function rawFile(filename: string) {
  return { driver: 'raw', file: { driver: 'file', filename, locking: 'off', 'read-only': true } };
}

/** The disk outlives neither its VM nor a crash of the machine: nothing is gained by flushing it. */
function overlay(filename: string) {
  return {
    'node-name': 'disk',
    driver: 'qcow2',
    discard: 'unmap',
    cache: { direct: false, 'no-flush': true },
    backing: 'base',
    file: {
      driver: 'file',
      filename,
      discard: 'unmap',
      locking: 'off',
      cache: { direct: false, 'no-flush': true },
    },
  };
}
