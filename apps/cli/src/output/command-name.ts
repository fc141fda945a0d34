/** How users call this program: through npx in a checkout, which runs its sources, and by its name where a release is installed. */
export const COMMAND = import.meta.filename.endsWith('.ts') ? 'npx svc' : 'svc';
