const gradient = ctx.createConicGradient(0.5, 160, 120);
for (let stop = 0; stop <= 6; stop += 1)
  gradient.addColorStop(stop / 6, `hsl(${stop * 60}, 90%, 55%)`);
ctx.fillStyle = gradient;
ctx.beginPath();
ctx.arc(160, 120, 100, 0, 2 * Math.PI);
ctx.fill();
