for (let index = 0; index < 6; index += 1) {
  ctx.globalAlpha = 0.25 + index * 0.12;
  ctx.fillStyle = index % 2 === 0 ? '#7209b7' : '#f72585';
  ctx.beginPath();
  ctx.arc(60 + index * 40, 120, 60, 0, 2 * Math.PI);
  ctx.fill();
}
