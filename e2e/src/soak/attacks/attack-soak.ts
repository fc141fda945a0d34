import { mkdtemp, rm } from 'node:fs/promises';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { localTls } from '@svc/model-server';
import { Access } from '../../../test/access.ts';
import { idleState, returnsToIdle } from '../../../test/machine/consistency.ts';
import { leftoversOf } from '../../../test/machine/footprint.ts';
import { instanceOf } from '../../../test/machine/instance.ts';
import { startService } from '../../../test/start-service.ts';
import { deleteAll } from '../delete-all.ts';
import { endAfter } from '../end-after.ts';
import { AttackerProcess } from './attacker-process.ts';
import { comparison } from './latencies.ts';
import { MEASURED, startModel, Victim } from './victim.ts';

const POOL = 2;
/** Address of this machine on which the scripted model listens. */
const MODEL_HOST = '127.0.0.78';
/** The part of the time without the attacker. */
const ALONE = 0.4;

export interface AttackSoakOptions {
  readonly minutes: number;
  /** Receives lines about the progress. */
  readonly report: (line: string) => void;
  /** Ends the use early. The checks go on. */
  readonly signal: AbortSignal;
}

/**
 * Measures how fast one customer is served without and with another one who attacks the service in every way that is
 * known, all at once. Reports the figures, and checks none of them, since they depend on the machine. Then deletes
 * everything and looks for leftovers.
 * Returns the failures of the victim and the leftovers; an empty list means success.
 */
export async function attackSoak(options: AttackSoakOptions): Promise<string[]> {
  const { minutes, report, signal } = options;
  const directory = await mkdtemp(join(tmpdir(), 'svc-attack-soak-'));
  try {
    const tls = await localTls(directory, [MODEL_HOST]);
    const models = await startModel(MODEL_HOST, tls);
    try {
      const env = {
        SVC_POOL: `standard=${POOL}`,
        SVC_EGRESS_ALLOW_HOSTS: MODEL_HOST,
        SVC_EGRESS_CA_FILE: tls.caFile,
      };
      await using service = await startService({ env });
      const instance = await instanceOf(service.dataDir);
      const access = new Access(service.address);
      const idle = await idleState(instance, POOL);
      // The client that is measured, and the model, would be on machines that the attacker does not keep busy.
      using priority = new DisposableStack();
      priority.defer(() => setPriority(constants.priority.PRIORITY_NORMAL));
      setPriority(constants.priority.PRIORITY_HIGHEST);
      const victim = await Victim.start(access, models);
      const attacker = await access.signUp();

      const within = (share: number) => endAfter(share * minutes, signal);
      const alone = await victim.measureUntil(within(ALONE));
      const attack = AttackerProcess.start({
        address: service.address,
        apiKey: attacker.apiKey,
        victimEmail: victim.account.email,
        modelUrl: models.url,
      });
      const attacked = await victim.measureUntil(within(1 - ALONE));
      for (const line of await attack.stop()) report(line);
      for (const name of MEASURED) report(comparison(name, alone[name], attacked[name]));

      await victim.close();
      const accounts = [victim.account, attacker];
      await Promise.all(accounts.map(deleteAll));
      const problems = [...victim.failures];
      await returnsToIdle(instance, idle).catch((error: unknown) => problems.push(String(error)));
      await Promise.all(accounts.map(({ client }) => client.close()));
      const { exitCode, output } = await service.svc('down');
      if (exitCode !== 0) problems.push(`svc down ended with ${exitCode}: ${output}`);
      problems.push(...(await leftoversOf(instance)).map((left) => `left over: ${left}`));
      return problems;
    } finally {
      await models.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
