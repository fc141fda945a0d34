/** Something that the lab shows: it holds when the script ends with status 0, and its last lines are the evidence. */
export interface Check {
  readonly title: string;
  /** Shell script, after {@link PREAMBLE}. What it leaves running is there for the next ones. */
  readonly script: string;
}

/** What every script begins with. `each_vm` runs a command for the process id of every micro-VM. */
export const PREAMBLE = `set -eu
cd /mnt/svc
export HOME=/root SVC_IMAGE_DIR=/mnt/images SVC_DATA_DIR=/root/svc-data SVC_POOL=standard=1 SVC_KVM_PROBE_SECONDS=120
# Starting Node under emulation is slow. It keeps what it has compiled.
export NODE_COMPILE_CACHE=/root/node-cache
node=/mnt/svc/node_modules/node/bin/node
svc() { "$node" apps/cli/bin/svc.js "$@"; }
each_vm() { pids=$(pgrep qemu-system-x86); for pid in $pids; do "$@" || return 1; done; }
sandbox() { cat /root/sandbox-id; }
`;

/** The tests of the VM layer: the QEMU driver, the jail with its control groups, and whole VMs. */
const VM_TESTS = ['vmm/qemu/qemu.test.ts', 'jail/jail.test.ts', 'open-host.test.ts'];

/** In the order in which they run. */
export const CHECKS: readonly Check[] = [
  {
    title: 'the machine has KVM, systemd and cgroup v2, and svc finds them',
    script: `
systemctl --version | head -n 1
svc doctor >/root/doctor.log || { cat /root/doctor.log; exit 1; }
grep 'ok *KVM' /root/doctor.log
grep 'cgroups *version 2' /root/doctor.log`,
  },
  {
    title: 'a service with a pool starts on KVM',
    script: `
svc up --detach >/root/up.log 2>&1 || { cat /root/up.log; exit 1; }
grep -E 'ready|worker|✓' /root/up.log | tail -n 6
each_vm eval 'tr "\\0" " " </proc/$pid/cmdline | grep -q -- "-accel kvm"'`,
  },
  {
    title: 'create and exec',
    script: `
svc sandbox create --idle-timeout 2h --max-lifetime 2h >/root/sandbox-id
svc sandbox exec "$(sandbox)" -- uname -srm
svc sandbox exec "$(sandbox)" -- sh -c 'grep -m 1 "model name" /proc/cpuinfo; echo $((6 * 7)) | tee /root/mark'`,
  },
  {
    title: 'each VM is confined: user, capabilities, seccomp, and a root directory of its own',
    script: `
confined() {
  grep -E '^(Uid|CapEff|Seccomp):' /proc/$pid/status | tr '\\n' ' '; echo
  ! grep -qE '^Uid:\\s0' /proc/$pid/status && grep -qE '^CapEff:\\s0+$' /proc/$pid/status &&
    grep -qE '^Seccomp:\\s2' /proc/$pid/status && [ -c /proc/$pid/root/dev/kvm ] && [ ! -e /proc/$pid/root/etc/passwd ]
}
each_vm confined`,
  },
  {
    title: 'each VM has the limits of cgroup v2, each tenant a weight, and all together one',
    script: `
limited() {
  group=/sys/fs/cgroup$(cut -d: -f3 /proc/$pid/cgroup)
  for name in cpu.max memory.max pids.max; do printf '%s = %s; ' $name "$(cat $group/$name)"; done
  shared=$(dirname $group) all=$shared
  case $shared in */owner-*) all=$(dirname $shared); echo "cpu.weight of the tenant = $(cat $shared/cpu.weight)" ;; esac
  echo "cpu.weight of all = $(cat $all/cpu.weight)"
  ! grep -q max $group/memory.max $group/pids.max && ! grep -q '^max' $group/cpu.max
}
each_vm limited`,
  },
  {
    title: 'a guest that fills its memory loses the process, not the sandbox',
    script: `
status=0
svc sandbox exec "$(sandbox)" -- python3 -c 'x = bytearray(2 << 30)' 2>&1 | tail -n 1 || status=$?
svc sandbox exec "$(sandbox)" -- cat /root/mark | grep -x 42`,
  },
  {
    title: 'pause and resume',
    script: `
svc sandbox pause "$(sandbox)" | grep -o 'paused'
svc sandbox get "$(sandbox)" | grep '"state": "paused"'
svc sandbox resume "$(sandbox)" >/dev/null
svc sandbox exec "$(sandbox)" -- cat /root/mark | grep -x 42`,
  },
  {
    title: 'a service that was killed adopts its sandboxes',
    script: `
vms=$(pgrep qemu-system-x86 | sort | tr '\\n' ' ')
kill -KILL "$(svc status --json | grep -oE '"pid": *[0-9]+' | grep -oE '[0-9]+')"
svc up --detach >/root/up.log 2>&1 || { cat /root/up.log; exit 1; }
echo "VMs before: $vms; after: $(pgrep qemu-system-x86 | sort | tr '\\n' ' ')"
svc sandbox exec "$(sandbox)" -- cat /root/mark | grep -x 42`,
  },
  {
    title: 'delete, and a stop that leaves nothing',
    script: `
svc sandbox rm "$(sandbox)"
svc down | tail -n 2
left() { pgrep -l 'qemu|postgres' || true; ip netns list; grep svc /proc/mounts || true; ls -d /sys/fs/cgroup/svc* 2>/dev/null || true; }
left
[ -z "$(left | grep -v ' /mnt ')" ]`,
  },
  {
    title: 'a session of deictic with a scripted model',
    script: `svc demo 2>&1 | tail -n 12`,
  },
  {
    title: 'the Debian package under systemd: a restart keeps the sandboxes, and a stop ends them',
    script: `
dpkg --install /mnt/svc.deb >/root/dpkg.log 2>&1 || { cat /root/dpkg.log; exit 1; }
printf '%s\\n' SVC_IMAGE_DIR=$SVC_IMAGE_DIR SVC_KVM_PROBE_SECONDS=$SVC_KVM_PROBE_SECONDS >>/etc/svc/svc.env
installed() { env --unset=SVC_DATA_DIR --unset=SVC_POOL /usr/bin/svc "$@"; }
# A start that takes too long for its own deadlines is repeated by systemd.
ready() { until installed status | grep -E '^state +ready'; do sleep 5; done; }
systemctl start svc
ready
id=$(installed sandbox create --idle-timeout 2h --max-lifetime 2h)
installed sandbox exec "$id" -- sh -c 'nohup sleep 7200 >/dev/null 2>&1 & echo $! >/run/pid'
systemctl restart svc
ready
installed sandbox exec "$id" -- sh -c 'ps -o args= "$(cat /run/pid)"' | grep -x 'sleep 7200'
installed down | tail -n 1
until [ "$(systemctl is-active svc)" = inactive ]; do sleep 1; done
if pgrep -l 'qemu|postgres'; then exit 1; fi
dpkg --purge svc >/root/dpkg.log 2>&1 || { cat /root/dpkg.log; exit 1; }`,
  },
  ...VM_TESTS.map((file) => ({
    title: `the tests of ${file}`,
    script: `
"$node" node_modules/vitest/vitest.mjs run --project unit packages/microvm/src/${file} >/root/vitest.log 2>&1 ||
  { tail -n 60 /root/vitest.log; exit 1; }
grep -E 'Tests|Duration' /root/vitest.log`,
  })),
];
