"""Records of OAR on Grid'5000 (Batsim's evaluation; Dutot et al., JSSPP 2016), beside simulations."""
