import { Command } from 'commander';

interface DoctorOptions {
  readonly json?: boolean;
  readonly fleet?: boolean;
}

/** `svc doctor`: checks whether this machine can run the service, or what is wrong with a fleet, and suggests fixes. */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check this machine and its service; exit code 1 if a check fails')
    .option('--fleet', 'check the fleet of the configured database instead of this machine')
    .option('--json', 'print the findings as JSON')
    .action(async ({ json, fleet }: DoctorOptions) => {
      const { findingsText } = await import('../doctor/findings.ts');
      const findings = fleet
        ? await (await import('../doctor/fleet/examine-fleet.ts')).examineFleet()
        : await (await import('../doctor/examine.ts')).examine();
      console.log(json ? JSON.stringify(findings, null, 2) : findingsText(findings));
      if (findings.some(({ verdict }) => verdict === 'fail')) process.exitCode = 1;
    });
}
