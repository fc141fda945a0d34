import { listImages } from '@svc/microvm';
import { type Check, ok, warn } from '../finding.ts';

/** The images that the configured templates need. */
export const imagesCheck: Check = {
  name: 'images',
  run: async ({ config }) => {
    const images = await listImages(config.imageDir);
    return config.templates.map((template) => {
      const name = `image ${template}`;
      const ready = images.find((image) => image.template === template && image.ready);
      if (ready !== undefined) return ok(name, ready.id);
      return warn(name, 'not built: the next start builds it', `svc image build ${template}`);
    });
  },
};
