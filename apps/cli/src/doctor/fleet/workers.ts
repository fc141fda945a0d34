import { X509Certificate } from 'node:crypto';
import { pinCertificate } from '@svc/service-kit/tls';
import type { FleetWorker, OpenFleet } from '@svc/store';
import { Agent, request } from 'undici';
import { formatMib } from '../../output/format.ts';
import { EXPIRES_SOON_MS } from '../checks/configuration.ts';
import { type Finding, fail, ok, warn } from '../findings.ts';
import { type AskedDatabase, clockFinding, MAX_CLOCK_DIFFERENCE } from './database.ts';

const TIMEOUT_MS = 5_000;
/** Less than most sandboxes are given. */
const FEW_DISK_MIB = 2048;
/** The time that a worker sends with an answer has whole seconds. RFC 9110, section 6.6.1. */
const DATE_STEP = 1;

/** Each worker: as its last heartbeat describes it, and as it answers this machine now. */
export async function workerFindings(
  { fleet }: Pick<OpenFleet, 'fleet'>,
  { ahead }: Pick<AskedDatabase, 'ahead'>,
): Promise<Finding[]> {
  const workers = await fleet.list();
  if (workers.length === 0) {
    const mend = 'start one: svc worker, see docs/operations.md';
    return [fail('workers', 'none has registered', mend)];
  }
  const versions = Map.groupBy(workers, ({ version }) => version);
  const [usual] = [...versions].toSorted(([, a], [, b]) => b.length - a.length);
  const each = await Promise.all(
    workers.map(async (worker) => [
      ...stateFindings(worker, usual?.[0] ?? worker.version),
      ...answerFindings(worker, await ask(worker), ahead),
    ]),
  );
  const found = each.flat();
  const silent = workers.filter(({ standing }) => standing === 'unreachable').length;
  if (silent * 2 > workers.length && silent > 1) {
    const detail = `${silent} of ${workers.length} are silent: while most are, none is given up`;
    found.unshift(
      fail('workers', detail, 'look at what they share: the load balancer, a certificate'),
    );
  }
  return found.length > 0 ? found : [ok('workers', summary(workers))];
}

function summary(workers: readonly FleetWorker[]): string {
  const sum = (number: (worker: FleetWorker) => number) =>
    workers.reduce((total, worker) => total + number(worker), 0);
  const reserved = sum(({ reserved_memory_mib }) => reserved_memory_mib);
  const memory = sum(({ memory_mib }) => memory_mib);
  const sandboxes = sum((worker) => worker.sandboxes);
  return (
    `${workers.length}, with ${sandboxes} sandbox(es), ` +
    `and ${formatMib(reserved)} of ${formatMib(memory)} promised`
  );
}

/** What the database knows of a worker. */
function stateFindings(worker: FleetWorker, usualVersion: string): Finding[] {
  const { worker_id: id, version, templates, free_disk_mib: disk, standing } = worker;
  const found: Finding[] = [];
  if (standing === 'cordoned' || standing === 'draining') {
    const mend = `\`svc worker uncordon ${id}\` undoes it`;
    found.push(warn('worker', `${id} is ${standing}: it gets no new sandboxes`, mend));
  }
  if (worker.is_contested) {
    const mend = 'give each worker an SVC_WORKER_ID of its own, and restart the other';
    found.push(fail('worker', `another machine wants the id of ${id}, and is refused`, mend));
  }
  if (version !== usualVersion) {
    const mend = 'finish the upgrade, see docs/operations.md';
    found.push(warn('worker', `${id} runs ${version}, others ${usualVersion}`, mend));
  }
  if (disk !== null && disk < FEW_DISK_MIB) {
    const mend = 'delete sandboxes on it, or add a worker';
    found.push(fail('worker', `${id} has only ${formatMib(disk)} of disk left to promise`, mend));
  }
  for (const { template } of templates.filter(({ ready }) => !ready)) {
    const mend = `its log says why; \`svc doctor\` on its machine checks images`;
    found.push(warn('worker', `${id} has no image of ${template} ready`, mend));
  }
  const expires = new X509Certificate(worker.certificate).validToDate;
  if (expires.getTime() - Date.now() < EXPIRES_SOON_MS) {
    const day = expires.toISOString().slice(0, 10);
    const mend = 'restart it in place: it gets another certificate, and its VMs stay';
    found.push(warn('worker', `the certificate of ${id} is valid until ${day}`, mend));
  }
  return found;
}

/** When a worker answered, by its clock, or why it did not. */
type Answer = { readonly date: Date; readonly askedAt: number } | { readonly failure: string };

function answerFindings(worker: FleetWorker, answer: Answer, ahead: number): Finding[] {
  const { worker_id: id, url, standing, last_seen_at: seen } = worker;
  const isSilent = standing === 'unreachable';
  const silence = `silent since ${seen.toISOString()}`;
  if ('failure' in answer) {
    const detail = isSilent
      ? `${id} is ${silence} and does not answer at ${url}: ${answer.failure}`
      : `${id} sends heartbeats, but does not answer at ${url}: ${answer.failure}`;
    const mend = isSilent
      ? 'bring the machine or its network back; `svc worker rm --lost` gives it up at once'
      : 'check the network from here to it; control planes may not reach it either';
    return [fail('worker', detail, mend)];
  }
  const found: Finding[] = [];
  if (isSilent) {
    const mend = 'check the network from it to the control planes, and its log';
    found.push(fail('worker', `${id} is ${silence}, but answers here`, mend));
  }
  const difference = (answer.date.getTime() - answer.askedAt) / 1000 + ahead;
  if (Math.abs(difference) > MAX_CLOCK_DIFFERENCE + DATE_STEP) {
    found.push(clockFinding('worker', id, difference));
  }
  return found;
}

/** Any answer will do, also the refusal of a request without a token: only the worker has the key of its certificate. */
async function ask({ url, certificate }: FleetWorker): Promise<Answer> {
  const dispatcher = new Agent({
    connect: { timeout: TIMEOUT_MS, ...pinCertificate(certificate) },
  });
  try {
    const askedAt = Date.now();
    const { headers, body } = await request(url, {
      dispatcher,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await body.dump();
    return { date: new Date(String(headers.date)), askedAt };
  } catch (error) {
    return { failure: error instanceof Error ? error.message : String(error) };
  } finally {
    await dispatcher.destroy();
  }
}
