import type { Config } from '@svc/config';
import type { Progress } from '../../output/progress.ts';

/** Has the image of every configured template ready, building what is missing. */
export async function readyImages(
  config: Config,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { buildImage } = await import('@svc/microvm');
  const { imageDir, templates } = config;
  for (const template of templates) {
    await progress.step(
      `image ${template}`,
      (note) => buildImage({ template, imageDir, onProgress: note }, signal),
      ({ id }) => id,
    );
  }
}
