"""What could be gained by choosing algorithms: bounds, and the candidates that they speak for."""
