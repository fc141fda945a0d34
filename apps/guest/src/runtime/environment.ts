import { userInfo } from 'node:os';
import { AGENT_USER } from '@svc/contract';
import { desktopEnvironment } from '../desktop/index.ts';

const DEFAULTS = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LANG: 'C.UTF-8',
  SHELL: '/bin/bash',
};

/** The environment of an agent's processes: the customer's values, with the agent's user and home directory. */
export function agentEnvironment(
  values: Readonly<Record<string, string>>,
  home: string,
): Record<string, string> {
  const user = process.getuid?.() === 0 ? AGENT_USER : userInfo().username;
  return { ...DEFAULTS, ...desktopEnvironment(), ...values, HOME: home, USER: user, LOGNAME: user };
}
