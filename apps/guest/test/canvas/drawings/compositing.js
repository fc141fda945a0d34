const modes = [
  'source-atop',
  'source-in',
  'source-out',
  'destination-over',
  'destination-out',
  'xor',
  'lighter',
  'copy',
];
for (const [index, mode] of modes.entries()) {
  const layer =
    typeof OffscreenCanvas === 'undefined' ? createCanvas(80, 110) : new OffscreenCanvas(80, 110);
  const context = layer.getContext('2d');
  context.fillStyle = '#1d4ed8';
  context.fillRect(5, 5, 45, 60);
  context.globalCompositeOperation = mode;
  context.fillStyle = '#dc2626';
  context.beginPath();
  context.arc(50, 65, 28, 0, 2 * Math.PI);
  context.fill();
  ctx.drawImage(layer, (index % 4) * 80, Math.floor(index / 4) * 120);
}
