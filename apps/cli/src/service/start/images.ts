import type { Config } from '@svc/service-kit/config';
import type { Progress } from '../../output/progress.ts';

/** Has the image of every configured template ready, building what is missing. */
export async function readyImages(
  config: Config,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const { buildImage, listImages } = await import('@svc/microvm');
  const present = await listImages(config.imageDir);
  for (const template of config.templates) {
    const ready = present.find((image) => image.template === template && image.ready);
    await progress.step(
      `image ${template}`,
      async (note) =>
        ready ??
        (await buildImage({ template, imageDir: config.imageDir, onProgress: note }, signal)),
      ({ id }) => (ready === undefined ? `built ${id}` : id),
    );
  }
}
