ctx.translate(160, 120);
for (let step = 0; step < 12; step += 1) {
  ctx.save();
  ctx.rotate((step * Math.PI) / 6);
  ctx.transform(1, 0.2, -0.2, 1, 50, 0);
  ctx.scale(1 + step / 24, 1);
  ctx.fillStyle = `hsla(${step * 30}, 70%, 50%, 0.8)`;
  ctx.fillRect(0, -10, 40, 20);
  ctx.restore();
}
