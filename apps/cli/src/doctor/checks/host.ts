import { existsSync } from 'node:fs';
import { access, constants, readFile } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import { runProgram } from '@svc/service-kit/process';
import { type Check, fail, ok, warn } from '../findings.ts';

const MIN_NODE = 24;
const HOST_PACKAGES = new URL('../../../../../scripts/host-packages.txt', import.meta.url);
const RECOMMENDED_QEMU = 10;
const MIN_QEMU = 7;
const EMULATION = 'sandboxes run under emulation (TCG), which works but is slower';
const USE_KVM =
  'use a machine with hardware virtualisation, or enable nested virtualisation on this one';

/** The version of Node that runs the service. */
export const nodeCheck: Check = {
  name: 'Node',
  run: async () => {
    const major = Number(process.versions.node.split('.')[0]);
    if (major >= MIN_NODE) return ok('Node', process.versions.node);
    return fail(
      'Node',
      `${process.versions.node}; ${MIN_NODE} or newer is required`,
      'start svc with its own Node: in a checkout, `sh scripts/bootstrap.sh` installs it',
    );
  },
};

/** Root is required for the network namespaces, cgroups and uids of the VMs. */
export const userCheck: Check = {
  name: 'user',
  run: async () =>
    process.getuid?.() === 0
      ? ok('user', 'root')
      : fail(
          'user',
          'not root',
          'run svc as root: it creates network namespaces and jails for VMs',
        ),
};

/** The programs from Debian packages that the service runs. */
export const programsCheck: Check = {
  name: 'programs',
  run: async () => {
    const text = await readFile(HOST_PACKAGES, 'utf8');
    const packages = text.split('\n').filter((line) => /^[a-z]/.test(line));
    const missing = packages
      .map((line) => line.split(/\s+/))
      .filter(([, programOrFile = '']) => !isPresent(programOrFile))
      .map(([name]) => name);
    if (missing.length === 0) return ok('programs', `all ${packages.length} packages`);
    return fail(
      'programs',
      `missing: ${missing.join(', ')}`,
      `apt-get install --no-install-recommends ${missing.join(' ')}`,
    );
  },
};

function isPresent(programOrFile: string): boolean {
  if (isAbsolute(programOrFile)) return existsSync(programOrFile);
  const directories = (process.env.PATH ?? '').split(delimiter);
  return directories.some((directory) => existsSync(join(directory, programOrFile)));
}

/** The loop devices, through which images that have a base are built. */
export const loopDevicesCheck: Check = {
  name: 'loop devices',
  run: async () => {
    const free = await runProgram('losetup', ['--find']).catch(() => undefined);
    if (free !== undefined) return ok('loop devices', `${free.trim()} is free`);
    return warn(
      'loop devices',
      'none: only the images of templates without a base can be built',
      'load the module: modprobe loop; in a container, give it /dev/loop-control and /dev/loop*',
    );
  },
};

/** The virtual machine monitor. */
export const qemuCheck: Check = {
  name: 'QEMU',
  run: async () => {
    // Missing or broken: either way there is no version to report.
    const output = await runProgram('qemu-system-x86_64', ['--version']).catch(() => '');
    const version = /version (\d+)\.(\d+\.\d+)/.exec(output);
    if (version === null) return fail('QEMU', 'not found', 'apt-get install qemu-system-x86');
    const shown = `${version[1]}.${version[2]}`;
    const major = Number(version[1]);
    if (major >= RECOMMENDED_QEMU) return ok('QEMU', shown);
    const mend = 'install qemu-system-x86 from bookworm-backports';
    return major < MIN_QEMU
      ? fail('QEMU', `${shown} is too old`, mend)
      : warn('QEMU', `${shown} works; ${RECOMMENDED_QEMU} is better`, mend);
  },
};

/** Whether VMs use hardware virtualisation, according to the probe guest of an earlier start if there was one. */
export const kvmCheck: Check = {
  name: 'KVM',
  run: async ({ config, service }) => {
    const running = service?.workers?.[0]?.accelerator;
    const kvm = running === undefined ? await probeVerdict(config.imageDir) : running === 'kvm';
    if (kvm === true) return ok('KVM', 'a probe guest boots with it');
    if (!(await canUseKvm())) return warn('KVM', `no usable /dev/kvm: ${EMULATION}`, USE_KVM);
    if (kvm === false)
      return warn('KVM', `no guest boots with it on this machine: ${EMULATION}`, USE_KVM);
    return ok('KVM', '/dev/kvm is present; the first start probes whether a guest boots with it');
  },
};

/** The stored verdict of the probe guest; undefined before the first start. */
async function probeVerdict(imageDir: string): Promise<boolean | undefined> {
  const text = await readFile(join(imageDir, 'kvm.json'), 'utf8').catch(() => '{}');
  const { kvm } = JSON.parse(text) as { kvm?: boolean };
  return kvm;
}

async function canUseKvm(): Promise<boolean> {
  return access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** The cgroups that limit the CPU and memory of a VM. */
export const cgroupsCheck: Check = {
  name: 'cgroups',
  run: async () => {
    if (existsSync('/sys/fs/cgroup/cgroup.controllers')) return ok('cgroups', 'version 2');
    const hasVersion1 = ['cpu', 'memory'].every((name) =>
      existsSync(`/sys/fs/cgroup/${name}/tasks`),
    );
    if (hasVersion1) return ok('cgroups', 'version 1');
    return warn(
      'cgroups',
      'none: the CPU shares of sandboxes are not enforced',
      'mount cgroup version 2 at /sys/fs/cgroup',
    );
  },
};
