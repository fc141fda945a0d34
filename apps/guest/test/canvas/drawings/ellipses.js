for (let index = 0; index < 6; index += 1) {
  ctx.beginPath();
  ctx.ellipse(160, 120, 130, 40, (index * Math.PI) / 6, 0, 2 * Math.PI);
  ctx.strokeStyle = `hsl(${index * 60}, 80%, 40%)`;
  ctx.lineWidth = 5;
  ctx.stroke();
}
