import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '@svc/config';
import { Agent, request } from 'undici';
import { readCa } from '../../connection/ca-file.ts';
import { servicePaths } from '../../service/paths.ts';
import { type Finding, fail, ok } from '../findings.ts';

const TIMEOUT_MS = 5_000;

/** The public URLs, by which customers reach the control planes and the runtime hosts, through what lies in front of them. */
export async function frontFindings(config: Config): Promise<Finding[]> {
  const fronts = [
    { name: 'public URL', url: config.baseUrl, setting: 'SVC_BASE_URL' },
    {
      name: 'runtime URL',
      url: config.runtimeUrl?.replace(/^ws/, 'http'),
      setting: 'SVC_RUNTIME_URL',
    },
  ];
  const dispatcher = new Agent({ connect: { timeout: TIMEOUT_MS, ca: await trustedCa(config) } });
  try {
    return await Promise.all(
      fronts.flatMap(({ name, url, setting }) =>
        url === undefined ? [] : [examine({ name, url, setting, dispatcher })],
      ),
    );
  } finally {
    await dispatcher.destroy();
  }
}

interface Front {
  readonly name: string;
  readonly url: string;
  readonly setting: string;
  readonly dispatcher: Agent;
}

async function examine({ name, url, setting, dispatcher }: Front): Promise<Finding> {
  const mend = `check what lies behind ${setting}: the load balancer and the processes`;
  try {
    const { statusCode, body } = await request(new URL('/readyz', url), {
      dispatcher,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await body.dump();
    if (statusCode === 200) return ok(name, `${url} answers`);
    return fail(name, `${url} answers ${statusCode}: nobody there is ready`, mend);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    return fail(name, `${url} does not answer: ${cause}`, mend);
  }
}

/** Undefined for the CAs that the system trusts. */
async function trustedCa(config: Config): Promise<string | undefined> {
  if (config.caFile !== undefined) return readCa(config.caFile);
  const local = join(servicePaths(config.dataDir).tls, 'ca.pem');
  return existsSync(local) ? readCa(local) : undefined;
}
