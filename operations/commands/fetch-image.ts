import { CodedError } from '#common/errors/index.ts';
import { imageKinds } from '#contracts/capabilities.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { imageFile } from '#operations/hypervisors/index.ts';
import { withFeatures } from './with-features.ts';

/** Brings an image that is on offer to a node, with its progress. */
export async function fetchImageCommand(
  slug: string,
  options: { node: string; url: string; checksum: string },
): Promise<void> {
  await withFeatures(async ({ catalog, clusters, hypervisors }) => {
    const images = await catalog.listImages(imageKinds);
    const image = images.find((one) => one.slug === slug);
    if (image === undefined)
      throw new CodedError(
        'command.no_image',
        `${slug} is not on offer: ${images.map((one) => one.slug).join(', ') || 'nothing is'}.`,
      );
    const nodes = await clusters.listNodes(systemActor, null);
    const node = nodes.find(({ name }) => name === options.node);
    if (node === undefined)
      throw new CodedError(
        'command.no_node',
        `There is no node ${options.node}: ${nodes.map(({ name }) => name).join(', ') || 'there is none'}.`,
      );
    let last = -1;
    const source = { file: imageFile(image), url: options.url, checksum: options.checksum.toLowerCase() };
    await hypervisors.of(node).fetchImage(source, (percent) => {
      if (percent === last) return;
      last = percent;
      process.stdout.write(`\r${slug}: ${percent} %`);
    });
    process.stdout.write(`\r${slug} is at ${node.name}\n`);
  });
}
