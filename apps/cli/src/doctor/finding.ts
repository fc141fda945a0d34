import type { Config } from '@svc/config';
import type { ServiceRecord } from '../service/service-record.ts';

/** What a check found. `mend` is the command or step that helps when it is not ok. */
export interface Finding {
  readonly name: string;
  readonly verdict: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly mend?: string;
}

/** What checks look at besides the machine. */
export interface Circumstances {
  readonly config: Config;
  /** The service that runs on the data directory now. */
  readonly service: ServiceRecord | undefined;
}

/** One check. It may find several things; throwing counts as a failure of the check itself. */
export interface Check {
  readonly name: string;
  run(circumstances: Circumstances): Promise<Finding | readonly Finding[]>;
}

/** All is well. */
export function ok(name: string, detail: string): Finding {
  return { name, verdict: 'ok', detail };
}

/** It works, but not as well as it could. */
export function warn(name: string, detail: string, mend: string): Finding {
  return { name, verdict: 'warn', detail, mend };
}

/** The service cannot work like this. */
export function fail(name: string, detail: string, mend: string): Finding {
  return { name, verdict: 'fail', detail, mend };
}
